package io.deltaic.spark.write

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, BoundReference, Expression, Predicate}
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.bridge.ReadSet
import io.deltaic.spark.partition.PartitionValues
import io.deltaic.spark.scan.TableSchema

/**
 * The files that a write replaces. One too many would lose rows, so partitions are compared by their values, not by the
 * text of the log, and a value that cannot be read is an error.
 *
 * @param adds what the write adds, which decides for [[Replaced.WrittenPartitions]]
 */
private[write] final class ReplacedFiles(
    snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId,
    replaced: Replaced,
    adds: Seq[AddFile]
) {

  /** Those that are in the table. */
  lazy val files: Seq[AddFile] =
    if (replaced == Replaced.Nothing) Nil else active.filter(selects).toVector

  /**
   * The write has read the partitions it replaces, so that what others change in the rest of the table does not matter.
   */
  def readSet: ReadSet = replaced match {
    case Replaced.Nothing => ReadSet.nothing
    case Replaced.Everything => ReadSet.everything
    case Replaced.Partitions(_) | Replaced.WrittenPartitions => readPartitions
  }

  private def readPartitions: ReadSet = new ReadSet {
    private val paths = files.iterator.map(file => canonical(file.path)).toSet
    override def isEmpty: Boolean = false
    override def wholeTable: Boolean = false
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] = added.find(selects)
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
      removed.find(remove => paths(canonical(remove.path)))
  }

  /** Whether a file of this table, written under the same definition, is in what the write replaces. */
  private lazy val selects: AddFile => Boolean = replaced match {
    case Replaced.Nothing => _ => false
    case Replaced.Everything => _ => true
    case Replaced.Partitions(predicates) =>
      val selected = Predicate.createInterpreted(predicates.map(condition).reduceLeft(And))
      file => selected.eval(InternalRow.fromSeq(partition(file)))
    case Replaced.WrittenPartitions =>
      val written = adds.iterator.map(partition(_).map(comparable)).toSet
      file => written(partition(file).map(comparable))
  }

  /** Writers differ in how they spell a path. */
  private def canonical(logPath: String): String = LogPath.canonical(snapshot.table, logPath)

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
