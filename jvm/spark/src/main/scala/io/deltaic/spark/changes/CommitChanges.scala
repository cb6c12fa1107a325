package io.deltaic.spark.changes

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.log.CommitFile
import io.deltaic.protocol._

/** Which rows of a data file changed. */
private[spark] sealed trait RowSelection

private[spark] object RowSelection {

  /** All rows except those that the vector marks. */
  final case class AllBut(hidden: Option[DeletionVectorDescriptor]) extends RowSelection

  /** The rows that one vector marks and the other does not. */
  final case class Only(
      rows: DeletionVectorDescriptor,
      except: Option[DeletionVectorDescriptor]
  ) extends RowSelection
}

/**
 * Rows of one file that a commit changed.
 *
 * @param file the file to read; its statistics are valid for `rows`, and its deletion vector is not set
 * @param changeType the same for all rows; None if the file stores it for each row
 */
private[spark] final case class FileChange(
    file: AddFile,
    changeType: Option[String],
    rows: RowSelection
)

/** The changes of one commit, derived from its actions alone (Protocol § Reader Requirements for AddCDCFile). */
private[spark] object CommitChanges {

  private val everything = RowSelection.AllBut(None)

  /**
   *   1. A commit with `cdc` actions is described by them alone. Change data files have no row IDs,
   *      however: if rows must be identified, `add` and `remove` are read, and copied rows are both
   *      deleted and inserted.
   *   1. Otherwise rows of an `add` are inserted and rows of a `remove` are deleted, if the action
   *      has `dataChange` set.
   *   1. A path that is in both keeps its file and changes its deletion vector: the rows that only
   *      the new vector marks are deleted, and those that only the old one marked are back.
   */
  def of(table: Path, commit: CommitFile, identifiesRows: Boolean = false): Seq[FileChange] = {
    val recorded =
      if (identifiesRows) Nil
      else commit.actions.collect { case c: AddCdcFile => recordedChanges(c) }
    if (recorded.nonEmpty) recorded
    else if (isMergeWithoutChanges(commit)) Nil
    else {
      val removed = mutable.LinkedHashMap.empty[String, RemoveFile]
      commit.removes.filter(_.dataChange).foreach(r => removed(key(table, r.path)) = r)
      val inserted = commit.adds.filter(_.dataChange).toVector.flatMap { add =>
        removed.remove(key(table, add.path)) match {
          case Some(remove) => vectorChanged(table, commit.version, remove, add)
          case None => Seq(insertOf(add))
        }
      }
      val deleted = removed.valuesIterator.map { remove =>
        delete(table, commit.version, remove, RowSelection.AllBut(remove.deletionVector))
      }
      deleted.toVector ++ inserted
    }
  }

  /**
   * The same in items that can be read apart from each other, one for each file action. The changes of a commit with
   * `cdc` actions or deletion vectors are one item: the images of an update belong together.
   */
  def steps(table: Path, commit: CommitFile): IndexedSeq[Seq[FileChange]] = {
    val all = of(table, commit)
    val files = commit.actions.toVector.collect {
      case add: AddFile if add.dataChange => key(table, add.path)
      case remove: RemoveFile if remove.dataChange => key(table, remove.path)
    }
    val areApart = files.distinct.size == files.size &&
      all.forall(change => change.changeType.isDefined && change.rows == everything)
    if (all.isEmpty) Vector.empty
    else if (areApart) {
      val byFile = all.map(change => key(table, change.file.path) -> change).toMap
      files.map(file => Seq(byFile(file)))
    } else Vector(all)
  }

  /** All live rows of a file as inserts. */
  def insertOf(file: AddFile): FileChange = insert(file, RowSelection.AllBut(file.deletionVector))

  private def key(table: Path, path: String): String = LogPath.toAbsolute(table, path).toString

  private def recordedChanges(cdc: AddCdcFile): FileChange = {
    val file = AddFile(cdc.path, cdc.partitionValues, cdc.sizeBytes, 0L, dataChange = false)
    FileChange(file, None, everything)
  }

  /** Rows marked by the old vector are not in the table before, those marked by the new not after. */
  private def vectorChanged(
      table: Path,
      version: Long,
      remove: RemoveFile,
      add: AddFile
  ): Seq[FileChange] =
    if (remove.dvId == add.dvId) Nil
    else {
      val deleted = add.deletionVector.map { now =>
        delete(table, version, remove, RowSelection.Only(now, remove.deletionVector), Some(add))
      }
      val restored = remove.deletionVector.map { before =>
        insert(add, RowSelection.Only(before, add.deletionVector))
      }
      deleted.toSeq ++ restored
    }

  private def insert(add: AddFile, rows: RowSelection): FileChange =
    FileChange(add.copy(deletionVector = None), Some(ChangeColumns.Insert), rows)

  /**
   * @param matchingAdd the `add` of the same file: it has the fields that a `remove` may omit; bounds of
   *   rows that are deleted now are only in the `remove`
   */
  private def delete(
      table: Path,
      version: Long,
      remove: RemoveFile,
      rows: RowSelection,
      matchingAdd: Option[AddFile] = None
  ): FileChange = {
    val isComplete = remove.extendedFileMetadata.contains(true) && remove.sizeBytes.isDefined
    val file = matchingAdd match {
      case Some(add) => add.copy(stats = remove.stats, deletionVector = None)
      case None if isComplete || (remove.sizeBytes.isDefined && remove.partitionValues.nonEmpty) =>
        remove.restored.copy(deletionVector = None)
      case None =>
        throw DeltaicException(
          "DELTAIC_CHANGES_REMOVED_FILE_UNKNOWN",
          Map(
            "table" -> table.toString,
            "version" -> version.toString,
            "file" -> remove.path
          )
        )
    }
    FileChange(file, Some(ChangeColumns.Delete), rows)
  }

  /**
   * Whether the commit is a MERGE whose metrics report no changed row. It may still have rewritten
   * files, and has no `cdc` action that shows this.
   */
  private def isMergeWithoutChanges(commit: CommitFile): Boolean =
    commit.commitInfo.exists { info =>
      val metrics = info.json.path("operationMetrics")
      info.operation.contains("MERGE") &&
      Seq("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
        .forall(metrics.path(_).asText("") == "0")
    }
}
