package io.deltaic.spark.write

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, RemoveFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.{ReadSet, RebaseSettings}

/**
 * The file actions of a change that deletes rows.
 *
 * @param newDataFiles the files of `adds` whose data file this commit wrote
 * @param newVectorFiles the files it wrote deletion vectors to
 * @param changeFiles change data files of the whole commit, if its actions do not represent the changes
 */
private[spark] final case class RowDeletionActions(
    removes: Seq[RemoveFile],
    adds: Seq[AddFile] = Nil,
    newDataFiles: Seq[AddFile] = Nil,
    newVectorFiles: Seq[Path] = Nil,
    copiedRows: Long = 0L,
    changeFiles: Seq[AddFile] = Nil
) {

  /** All files to be deleted if the commit fails, including those of new rows. */
  def newFiles(written: Seq[AddFile]): NewFiles =
    NewFiles(written ++ newDataFiles ++ changeFiles, newVectorFiles)
}

private[spark] object RowDeletionActions {
  val none: RowDeletionActions = RowDeletionActions(Nil)
}

/**
 * The deletion of the rows that a write replaces.
 *
 * @param readSet what was read to find the rows
 * @param numRows the number of deleted rows, if they were counted
 * @param rebaseSettings set if single rows were deleted
 */
private[spark] final case class RowDeletionResult(
    files: RowDeletionActions,
    readSet: ReadSet,
    numRows: Option[Long],
    rebaseSettings: Option[RebaseSettings] = None
)

/** Deletes single rows as a DELETE does, but leaves the commit to the caller. */
private[spark] trait DeletesRows {

  /**
   * @param replaced a condition on the rows to delete, or on these and the new rows
   * @param newRows the files of the new rows
   */
  def apply(
      transaction: WriteTransaction,
      snapshot: Snapshot,
      replaced: Replaced,
      newRows: Seq[AddFile]
  ): RowDeletionResult
}
