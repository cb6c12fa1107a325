package io.deltaic.spark.write

import java.time.ZoneId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.ReadSet
import io.deltaic.spark.scan.files.{ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{PartitionKey, TableSchema}

/**
 * The files that a write replaces. One too many would lose rows, so partitions are compared by their values, not by
 * the strings in the log, and a value that cannot be parsed is an error.
 *
 * @param candidates the snapshot's files, which can be pruned by partition filters
 * @param adds the files that the write adds, which determine [[Replaced.WrittenPartitions]]
 */
private[write] final class OverwrittenFiles(
    snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId,
    candidates: SnapshotFiles,
    replaced: Replaced,
    adds: Seq[AddFile]
) {

  /** The replaced files of the snapshot. */
  lazy val files: Seq[AddFile] =
    if (replaced == Replaced.Nothing) Nil else active.filter(selects).toVector

  /**
   * The write has read the partitions that it replaces, so that concurrent changes in other partitions do not conflict.
   */
  def readSet: ReadSet = replaced match {
    case Replaced.Nothing => ReadSet.nothing
    case Replaced.Everything | Replaced.Matching(_, _, _) => ReadSet.everything
    case Replaced.Rows(_) | Replaced.WrittenPartitions => readPartitions
  }

  private def readPartitions: ReadSet = new ReadSet {
    private val paths = files.iterator.map(file => canonical(file.path)).toSet
    override def isEmpty: Boolean = false
    override def wholeTable: Boolean = false
    override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] = added.find(selects)
    override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
      removed.find(remove => paths(canonical(remove.path)))
  }

  /** Whether the write replaces a file of this table that was written under the same metadata. */
  private lazy val selects: AddFile => Boolean = replaced match {
    case Replaced.Nothing | Replaced.Matching(_, _, _) => _ => false
    case Replaced.Everything => _ => true
    case Replaced.Rows(condition) =>
      val selected = Predicate.createInterpreted(over(column)(condition))
      file => selected.eval(InternalRow.fromSeq(partition(file)))
    case Replaced.WrittenPartitions =>
      val written = adds.iterator.map(partitions.of).toSet
      file => written(partitions.of(file))
  }

  /** Writers differ in how they spell a path. */
  private def canonical(logPath: String): String = LogPath.canonical(snapshot.table, logPath)

  /**
   * All files; if the snapshot is distributed, only those that pass filters on partition columns: these may be too
   * many, but never too few.
   */
  private def active: Iterator[AddFile] =
    if (snapshot.isDistributed) candidates.select(ScanFilters(filters)).iterator else snapshot.adds

  private def filters: Seq[Expression] = replaced match {
    case Replaced.Nothing | Replaced.Everything | Replaced.Matching(_, _, _) => Nil
    case Replaced.Rows(condition) => Seq(over(attribute)(condition))
    case Replaced.WrittenPartitions => inPartitionsOfAdds
  }

  private def inPartitionsOfAdds: Seq[Expression] = {
    val columns = schema.partition.fields.toSeq.map(f => AttributeReference(f.name, f.dataType)())
    val partitions = adds.iterator.map(partition).distinctBy(_.map(PartitionKey.comparable)).toSeq
    if (columns.isEmpty || partitions.size > OverwrittenFiles.PartitionsToFilterBy) Nil
    else
      partitions.map { values =>
        columns
          .zip(values)
          .map { case (c, v) => EqualNullSafe(c, Literal(v, c.dataType)): Expression }
          .reduceLeft(And)
      }.reduceLeftOption(Or).toSeq
  }

  private val partitions = new PartitionKey(schema, zone)

  private def partition(file: AddFile): Seq[Any] = partitions.values(file)

  private def over(column: String => Expression)(condition: Expression): Expression =
    condition.transformUp { case reference: AttributeReference => column(reference.name) }

  private def column(name: String): Expression = {
    val ordinal = schema.partition.fieldIndex(name)
    BoundReference(ordinal, schema.partition(ordinal).dataType, nullable = true)
  }

  private def attribute(name: String): Expression = {
    val field = schema.partition(name)
    AttributeReference(field.name, field.dataType)()
  }
}

private object OverwrittenFiles {

  /** With more partitions, evaluating the filter takes longer than it saves. */
  private val PartitionsToFilterBy = 100
}
