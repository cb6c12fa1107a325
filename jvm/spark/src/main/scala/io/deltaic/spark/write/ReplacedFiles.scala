package io.deltaic.spark.write

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, BoundReference, Expression, Predicate}
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.partition.PartitionValues
import io.deltaic.spark.scan.TableSchema

/**
 * Finds the files that a write replaces. One too many would lose rows, so partitions are compared by their values, not by
 * the text of the log, and a value that cannot be read is an error.
 */
private[write] final class ReplacedFiles(snapshot: Snapshot, schema: TableSchema, zone: ZoneId) {

  /** @param adds what the write adds, which decides for [[Replaced.WrittenPartitions]] */
  def of(replaced: Replaced, adds: Seq[AddFile]): Iterator[AddFile] = replaced match {
    case Replaced.Nothing => Iterator.empty
    case Replaced.Everything => active
    case Replaced.Partitions(predicates) =>
      val selects = Predicate.createInterpreted(predicates.map(condition).reduceLeft(And))
      active.filter(file => selects.eval(InternalRow.fromSeq(partition(file))))
    case Replaced.WrittenPartitions =>
      val written = adds.iterator.map(partition(_).map(comparable)).toSet
      active.filter(file => written(partition(file).map(comparable)))
  }

  private def active: Iterator[AddFile] =
    (0 until snapshot.files.size).iterator.map(snapshot.files.add)

  private def partition(file: AddFile): Seq[Any] = schema.partition.fields.toSeq.map { field =>
    val text = file.partitionValues.getOrElse(schema.logName(field.name), null)
    PartitionValues.fromLog(field.name, field.dataType, text, zone)
  }

  private def comparable(value: Any): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    // As Spark groups them: NaN is one value, and so are the two zeros.
    case float: Float => java.lang.Float.floatToIntBits(float + 0.0f)
    case double: Double => java.lang.Double.doubleToLongBits(double + 0.0d)
    case other => other
  }

  private def condition(predicate: V2Predicate): Expression =
    PartitionPredicate.condition(predicate, column).getOrElse(
      throw WriteTransaction.unsupported(
        snapshot.table.toString,
        s"overwriting the rows where $predicate"
      )
    )

  private def column(reference: NamedReference): BoundReference = {
    val ordinal = schema.partition.fieldIndex(reference.fieldNames.head)
    BoundReference(ordinal, schema.partition(ordinal).dataType, nullable = true)
  }
}
