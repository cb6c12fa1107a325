package io.deltaic.spark.write

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.partition.PartitionValues
import io.deltaic.spark.scan.{SnapshotFiles, TableSchema}

/**
 * Finds the files that a write replaces. One too many would lose rows, so partitions are compared by their values, not by
 * the text of the log, and a value that cannot be read is an error.
 */
private[write] final class ReplacedFiles(
    snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId,
    files: SnapshotFiles
) {

  /** @param adds what the write adds, which decides for [[Replaced.WrittenPartitions]] */
  def of(replaced: Replaced, adds: Seq[AddFile]): Iterator[AddFile] = replaced match {
    case Replaced.Nothing => Iterator.empty
    case Replaced.Everything => active(Nil)
    case Replaced.Partitions(predicates) =>
      val bound = predicates.map(condition(_, column)).reduceLeft(And)
      val selects = Predicate.createInterpreted(bound)
      active(predicates.map(condition(_, attribute)))
        .filter(file => selects.eval(InternalRow.fromSeq(partition(file))))
    case Replaced.WrittenPartitions =>
      val written = adds.iterator.map(partition(_).map(comparable)).toSet
      active(inOneOf(adds)).filter(file => written(partition(file).map(comparable)))
  }

  /**
   * Where files are not in memory, those alone that filters leave, which may be too many but never too few.
   *
   * @param filters on partition columns
   */
  private def active(filters: => Seq[Expression]): Iterator[AddFile] =
    if (snapshot.isDistributed) files.select(filters, Nil).iterator else snapshot.adds

  private def inOneOf(adds: Seq[AddFile]): Seq[Expression] = {
    val columns = schema.partition.fields.toSeq.map(f => AttributeReference(f.name, f.dataType)())
    val partitions = adds.iterator.map(partition).distinctBy(_.map(comparable)).toSeq
    if (columns.isEmpty || partitions.size > ReplacedFiles.PartitionsToFilterBy) Nil
    else
      partitions.map { values =>
        columns
          .zip(values)
          .map { case (c, v) => EqualNullSafe(c, Literal(v, c.dataType)): Expression }
          .reduceLeft(And)
      }.reduceLeftOption(Or).toSeq
  }

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

  private def condition(
      predicate: V2Predicate,
      column: NamedReference => Expression
  ): Expression =
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

  private def attribute(reference: NamedReference): AttributeReference = {
    val field = schema.partition(reference.fieldNames.head)
    AttributeReference(field.name, field.dataType)()
  }
}

private object ReplacedFiles {

  /** A predicate of more takes longer than the files it saves. */
  private val PartitionsToFilterBy = 100
}
