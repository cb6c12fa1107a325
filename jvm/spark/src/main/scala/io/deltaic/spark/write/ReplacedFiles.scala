package io.deltaic.spark.write

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  And,
  BoundReference,
  EqualNullSafe,
  Expression,
  IsNull,
  Literal,
  Not,
  Predicate
}
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}
import org.apache.spark.sql.connector.expressions.{Literal => V2Literal, NamedReference}

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

  /** The conditions that `INSERT OVERWRITE ... PARTITION (p = 1)` yields, on a row of partition values. */
  private def condition(predicate: V2Predicate): Expression =
    (predicate.name, predicate.children.toSeq) match {
      case ("=" | "<=>", Seq(reference: NamedReference, value: V2Literal[_])) =>
        EqualNullSafe(column(reference), Literal(value.value, value.dataType))
      case ("IS_NULL", Seq(reference: NamedReference)) => IsNull(column(reference))
      case ("BOOLEAN_EXPRESSION", Seq(reference: NamedReference)) => column(reference)
      case ("NOT", Seq(negated: V2Predicate)) => Not(condition(negated))
      case ("AND", Seq(left: V2Predicate, right: V2Predicate)) =>
        And(condition(left), condition(right))
      case _ =>
        throw WriteTransaction.unsupported(
          snapshot.table.toString,
          s"overwriting the rows where $predicate"
        )
    }

  private def column(reference: NamedReference): BoundReference = {
    val ordinal = schema.partition.fieldIndex(reference.fieldNames.head)
    BoundReference(ordinal, schema.partition(ordinal).dataType, nullable = true)
  }
}
