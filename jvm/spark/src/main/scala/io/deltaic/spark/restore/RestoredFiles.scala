package io.deltaic.spark.restore

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.deltaic.JobInternals

import io.deltaic.log.Progress
import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.replay.FileTable
import io.deltaic.spark.commit.CommitFiles

/**
 * The file actions with which a table has the files of an older version again.
 *
 * A logical file is identified by its path and its deletion vector. So a file with another deletion vector is removed and
 * added with its old one, and a file that both versions have is not part of the commit.
 *
 * @param newest the files of the version that was read
 * @param older the files to restore
 * @param needsRowIds whether each file must have row IDs
 * @param laterRowIds those that files got after the older version; None if files have none
 */
private[restore] final class RestoredFiles(
    table: Path,
    newest: FileTable,
    older: FileTable,
    needsRowIds: Boolean,
    laterRowIds: Option[LaterRowIds]
) {

  /**
   * The files of the newest version that the older one does not have, and the files that are added again, which have
   * other rows than now.
   */
  private val (gone: Vector[AddFile], back: Vector[AddFile]) = {
    val phase = JobInternals.name("RESTORE", "compare the files of both versions", table.toString)
    Progress.of(phase, Some(newest.size.toLong + older.size), "files") { progress =>
      def missing(files: FileTable, other: FileTable): Vector[AddFile] =
        files.notIn(other, () => progress.add(1)).iterator.map(files.add).toVector
      (missing(newest, older), missing(older, newest))
    }
  }

  /** The files that are added again. The rows of a file that has row IDs in the newest version keep them. */
  val added: Vector[AddFile] = {
    val byPath = gone.iterator.map(file => canonical(file) -> file).toMap
    val files = back.map { file =>
      byPath.get(canonical(file)).fold(file)(withRowIdsOf(file, _)).copy(dataChange = true)
    }
    laterRowIds.fold(files)(withLaterRowIds(files, _))
  }

  def actions(nowMs: Long): CommitFiles =
    CommitFiles(removes = gone.map(_.remove(nowMs)), adds = added ++ withoutRowIds)

  def metrics: Map[String, Long] = Map(
    "tableSizeAfterRestore" -> older.totalSizeBytes,
    "numOfFilesAfterRestore" -> older.size.toLong,
    "numRemovedFiles" -> gone.size.toLong,
    "numRestoredFiles" -> added.size.toLong,
    "removedFilesSize" -> gone.map(_.sizeBytes).sum,
    "restoredFilesSize" -> added.map(_.sizeBytes).sum
  )

  /**
   * Files that stay, and lost their row IDs because another engine dropped the feature in between. They get their old IDs
   * back. Their rows do not change.
   */
  private def withoutRowIds: Iterator[AddFile] =
    if (!needsRowIds) Iterator.empty
    else (0 until newest.size).iterator.map(newest.add).filter(_.baseRowId.isEmpty).flatMap {
      file =>
        val i = older.indexOf(file.path, file.dvId)
        Option.when(i >= 0)(withRowIdsOf(file, older.add(i)))
    }

  /** The rows of a file that was removed meanwhile have the IDs that they got before that. */
  private def withLaterRowIds(files: Vector[AddFile], later: LaterRowIds): Vector[AddFile] = {
    val found = later.of(files.filter(_.baseRowId.isEmpty).map(canonical).toSet)
    files.map(file => found.get(canonical(file)).fold(file)(withRowIdsOf(file, _)))
  }

  /** A row keeps its ID: the rows of a file got IDs only once. */
  private def withRowIdsOf(file: AddFile, other: AddFile): AddFile =
    other.baseRowId.fold(file)(id => withRowIdsOf(file, RowIds(id, other.defaultRowCommitVersion)))

  private def withRowIdsOf(file: AddFile, ids: RowIds): AddFile =
    if (file.baseRowId.isDefined) file
    else
      file.copy(
        baseRowId = Some(ids.baseRowId),
        defaultRowCommitVersion = ids.defaultRowCommitVersion
      )

  private def canonical(file: AddFile): String = LogPath.canonical(table, file.path)
}
