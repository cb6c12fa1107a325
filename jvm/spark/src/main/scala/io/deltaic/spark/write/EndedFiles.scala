package io.deltaic.spark.write

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, RemoveFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.bridge.{ReadSet, RowEnds}

/**
 * What becomes of the files whose rows end.
 *
 * @param newDataFiles those of `adds` whose data file this commit wrote
 * @param newVectorFiles the files it wrote deletion vectors to
 * @param changeFiles change data files of all that the commit changes, where actions cannot tell it
 */
private[spark] final case class EndedFiles(
    removes: Seq[RemoveFile],
    adds: Seq[AddFile] = Nil,
    newDataFiles: Seq[AddFile] = Nil,
    newVectorFiles: Seq[Path] = Nil,
    copiedRows: Long = 0L,
    changeFiles: Seq[AddFile] = Nil
) {

  /** All files that nothing needs if the commit fails, with those of the rows that begin. */
  def newFiles(written: Seq[AddFile]): NewFiles =
    NewFiles(written ++ newDataFiles ++ changeFiles, newVectorFiles)
}

private[spark] object EndedFiles {
  val none: EndedFiles = EndedFiles(Nil)
}

/**
 * The rows that a write replaces.
 *
 * @param readSet what was read to find them
 * @param numRows how many they are, if they were counted
 * @param rowEnds given if they were ended one by one
 */
private[spark] final case class EndedRows(
    files: EndedFiles,
    readSet: ReadSet,
    numRows: Option[Long],
    rowEnds: Option[RowEnds] = None
)

/** Ends single rows as a DELETE does, but leaves the commit to the caller. */
private[spark] trait EndsRows {

  /**
   * @param replaced the rows: those that a condition on them, or on them and new ones, is true of
   * @param newRows the files of the new rows
   */
  def apply(
      transaction: WriteTransaction,
      snapshot: Snapshot,
      replaced: Replaced,
      newRows: Seq[AddFile]
  ): EndedRows
}
