package io.deltaic.spark.stream

import io.deltaic.log.CommitFile
import io.deltaic.protocol.{AddFile, DeltaicException, Metadata, TableFeatures}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.schema.ReadCompatibility

/**
 * Selects the files that a stream reads of a commit: those it adds. Commits that change or delete
 * rows are an error unless the options of the stream specify how to handle them.
 *
 * @param read the version with whose columns all rows are read, that of the DataFrame
 * @param tracking ends a batch before each change of the schema, so that all other rows can be read
 */
private[stream] final class StreamedCommits(
    log: DeltaLog,
    read: Snapshot,
    options: StreamOptions,
    tracking: Option[SchemaTracking]
) {

  private val table = log.table.toString

  /** In the order of the commit. Files with only copied rows are excluded. */
  def filesOf(commit: CommitFile): IndexedSeq[AddFile] = {
    requireReadable(commit)
    val added = commit.adds.filter(_.dataChange).toVector
    val removed = commit.removes.find(_.dataChange)
    removed.foreach { remove =>
      val (allowed, condition) =
        if (added.isEmpty) (options.ignoresDeletes, "DELTAIC_STREAM_COMMIT_DELETES")
        else (options.ignoresChanges, "DELTAIC_STREAM_COMMIT_CHANGES")
      if (!allowed)
        throw DeltaicException(
          condition,
          Map(
            "table" -> table,
            "version" -> commit.version.toString,
            "operation" -> commit.commitInfo.flatMap(_.operation).getOrElse("an unnamed operation"),
            "file" -> remove.path
          )
        )
    }
    if (removed.isDefined && options.skipsChanges) Vector.empty else added
  }

  /** Fails if the commit needs another reader, or if its rows cannot be read with the columns of the stream. */
  def requireReadable(commit: CommitFile): Unit = {
    commit.protocol.foreach(TableFeatures.requireReadable(table, commit.version, _))
    commit.metadata.foreach(requireReadable(_, commit.version))
  }

  /**
   * Rows of older versions may lack some of the columns of the stream, or have narrower ones. Newer
   * versions must have no other columns, otherwise values would be lost silently. A stream with the
   * newer columns can read both if columns were only added, widened, or made nullable.
   */
  def requireReadable(metadata: Metadata, version: Long): Unit =
    if (tracking.isEmpty) requireCompatible(metadata, version)

  private def requireCompatible(metadata: Metadata, version: Long): Unit = {
    def reads(columns: Metadata, data: Metadata, dataIsOlder: Boolean) =
      ReadCompatibility.holds(data, columns, dataIsOlder, readsWidened = true)
    val isNewer = version > read.version
    val hasNoOthers = reads(read.metadata, metadata, dataIsOlder = true)
    val hasAll = !isNewer || reads(read.metadata, metadata, dataIsOlder = false)
    if (!hasNoOthers || !hasAll)
      throw DeltaicException(
        if (isNewer && reads(metadata, read.metadata, dataIsOlder = true))
          "DELTAIC_STREAM_COLUMNS_OUTDATED"
        else "DELTAIC_STREAM_SCHEMA_CHANGED",
        Map(
          "table" -> table,
          "version" -> version.toString,
          "readVersion" -> read.version.toString
        )
      )
  }
}
