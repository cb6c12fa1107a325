package io.deltaic.spark.changes

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.AddFile
import io.deltaic.spark.scan.files.FileSource
import io.deltaic.spark.schema.{PartitionValues, TableSchema}
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * The files of a feed that a query reads.
 *
 * The change columns that are constant within a file are treated as partition values, so that
 * filters on them select files, and thereby commits, like filters on partition columns.
 */
private[changes] final class ChangeFeedFiles private (
    val files: IndexedSeq[AddFile],
    selections: Map[AddFile, RowSelection]
) {

  /** Whether some rows of some file are not part of its change. */
  def needRowFilter: Boolean = selections.nonEmpty

  /** The path of one of these files. */
  def filteredFile: Option[String] = files.find(selections.contains).map(_.path)

  /** Null when all rows of a file are part of its change. */
  def unchangedRows(file: AddFile): UTF8String =
    selections.get(file).fold[UTF8String](null)(ChangedRows.encode(file, _))
}

private[changes] object ChangeFeedFiles {

  private val all = RowSelection.AllBut(None)

  /** The files of `changes` that may contain a row for which all filters are true. */
  def select(
      table: Path,
      changes: IndexedSeq[CommittedChange],
      schema: TableSchema,
      filters: Seq[Expression],
      zone: ZoneId
  ): ChangeFeedFiles = {
    val files = changes.map(asFile)
    val statistics = SnapshotStatistics.ofFiles(files, schema.skipping, zone)
    val selection = FileSelection.select(statistics, filters)
    selection.unevaluated.headOption.foreach { i =>
      FileSource.failUnevaluated(table, changes(i).version, files(i).path, filters)
    }
    val selected = selection.files.toIndexedSeq
    val selections = selected.map(i => files(i) -> changes(i).change.rows).filter(_._2 != all)
    new ChangeFeedFiles(selected.map(files), selections.toMap)
  }

  private def asFile(committed: CommittedChange): AddFile = {
    import ChangeColumns._
    val micros = committed.timestampMs * 1000L
    val ofCommit = Map(
      CommitVersion -> committed.version.toString,
      CommitTimestamp -> PartitionValues.toLog(CommitTimestamp, TimestampType, micros)
    )
    val file = committed.change.file
    file.copy(partitionValues =
      file.partitionValues ++ ofCommit ++ committed.change.changeType.map(ChangeType -> _)
    )
  }
}
