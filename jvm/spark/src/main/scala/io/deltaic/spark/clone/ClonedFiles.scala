package io.deltaic.spark.clone

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, DeltaicException, LogPath}
import io.deltaic.replay.FileTable
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.commit.lineage.Lineage

/**
 * The file actions with which a table has the files of a version of another one.
 *
 * A clone has row IDs and row commit versions of its own, and so have its files.
 *
 * @param clone the directory of the clone
 * @param placement where the clone has the files of its source
 * @param current the files that the table has
 * @param needsRowIds whether each file must have row IDs
 */
private[clone] final class ClonedFiles(
    clone: Path,
    placement: FilePlacement,
    source: ClonedSource,
    current: Option[FileTable],
    needsRowIds: Boolean
) {

  private val kept = mutable.BitSet.empty

  private val missing: Vector[(AddFile, AddFile)] =
    source.files.map(file => (file, placed(file))).filter { case (_, file) =>
      val i = current.fold(-1)(_.indexOf(file.path, file.dvId))
      if (i >= 0) {
        if (source.filesChange) requireUnchanged(file, current.get.add(i))
        kept += i
      }
      i < 0
    }.toVector

  private val removed: Vector[AddFile] = current.toVector.flatMap { files =>
    (0 until files.size).iterator.filterNot(kept).map(files.add)
  }

  /** The files of the source that the table does not have yet, each as the source has it and as the clone has it. */
  val added: Vector[(AddFile, AddFile)] = {
    // A file with another deletion vector keeps its row IDs.
    val byPath = removed.iterator.map(file => canonical(file) -> file).toMap
    missing.map { case (original, file) =>
      val before = if (byPath.isEmpty) None else byPath.get(canonical(file))
      (
        original,
        before.fold(file) { other =>
          file.copy(
            baseRowId = other.baseRowId,
            defaultRowCommitVersion = other.defaultRowCommitVersion
          )
        }
      )
    }
  }

  def actions(nowMs: Long): CommitFiles =
    CommitFiles(removes = removed.map(_.remove(nowMs)), adds = added.map(_._2) ++ withoutRowIds)

  /** Files that stay, and get row IDs because the clone has row tracking from now on. Their rows do not change. */
  private def withoutRowIds: Seq[AddFile] =
    if (!needsRowIds) Nil
    else
      current.toSeq.flatMap(files => kept.iterator.map(files.add)).filter(_.baseRowId.isEmpty)

  /** A commit cannot remove a path and add it again. */
  private def requireUnchanged(file: AddFile, cloned: AddFile): Unit =
    if (file.sizeBytes != cloned.sizeBytes || file.modificationTimeMs != cloned.modificationTimeMs)
      throw DeltaicException(
        "DELTAIC_CLONED_FILE_CHANGED",
        Map("table" -> clone.toString, "source" -> source.root.toString, "file" -> file.path)
      )

  private def canonical(file: AddFile): String = LogPath.canonical(clone, file.path)

  def metrics(isShallow: Boolean): Map[String, Long] = {
    val copied = if (isShallow) Vector.empty else added.map(_._2)
    Map(
      "sourceTableSize" -> source.sizeBytes,
      "sourceNumOfFiles" -> source.numFiles.toLong,
      "numRemovedFiles" -> removed.size.toLong,
      "numCopiedFiles" -> copied.size.toLong,
      "removedFilesSize" -> removed.map(_.sizeBytes).sum,
      "copiedFilesSize" -> copied.map(_.sizeBytes).sum
    )
  }

  private def placed(file: AddFile): AddFile = file.copy(
    path = placement.dataFile(file),
    deletionVector = file.deletionVector.map(placement.deletionVector),
    dataChange = true,
    // The lineage tells how rows have moved between files of the source.
    tags = file.tags - Lineage.Tag,
    baseRowId = None,
    defaultRowCommitVersion = None
  )
}
