package io.deltaic.spark.write.files

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.schema.IdentityColumn

/** Tracks the high-water marks of identity columns in the rows of one task. */
private[write] final class IdentityHighWaterMarks(schema: StructType) {
  private val columns: Array[(Int, IdentityColumn)] = schema.fields.zipWithIndex.flatMap {
    case (field, i) => IdentityColumn.of(field).map(i -> _)
  }
  private val furthest = Array.fill[Option[Long]](columns.length)(None)

  val isEmpty: Boolean = columns.isEmpty

  def update(row: InternalRow): Unit = {
    var i = 0
    while (i < columns.length) {
      val (ordinal, column) = columns(i)
      if (!row.isNullAt(ordinal)) {
        val value = row.getLong(ordinal)
        if (column.isBeyond(value, furthest(i))) furthest(i) = Some(value)
      }
      i += 1
    }
  }

  /** The marks beyond those of the table, by column. */
  def result: Map[String, Long] = columns.indices.flatMap { i =>
    val column = columns(i)._2
    furthest(i).filter(column.isBeyond(_, column.highWaterMark)).map(column.name -> _)
  }.toMap
}

private[spark] object IdentityHighWaterMarks {

  /** @param marks of the tasks of one write */
  def merged(schema: StructType, marks: Iterable[Map[String, Long]]): Map[String, Long] =
    schema.fields.flatMap(IdentityColumn.of).flatMap { column =>
      marks.flatMap(_.get(column.name)).reduceOption { (a, b) =>
        if (column.isBeyond(a, Some(b))) a else b
      }.map(column.name -> _)
    }.toMap
}
