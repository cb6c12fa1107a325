package io.deltaic.spark.rowlevel

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.changes.{
  ChangeColumns,
  ChangesScanBuilder,
  CommittedChange,
  FileChange,
  ListedChanges,
  RowSelection
}
import io.deltaic.spark.write.WriteTransaction

/**
 * Writes the old images of deleted and updated rows into change data files (Protocol § Change Data
 * Files), and those of inserted rows if no task has written them.
 *
 * Spark passes only the position of an old row to a writer. So the old rows are read again from the
 * changed files. This happens only if the table has a change data feed.
 */
private[rowlevel] final class PreImageWriter(
    ofTable: RowLevelChange,
    transaction: WriteTransaction
) {

  /**
   * @param touched files with deleted or updated rows
   * @param fullyDeleted further files, all of whose rows are deleted
   * @param inserted files all of whose rows are inserted
   */
  def record(
      touched: Seq[MergedFile],
      fullyDeleted: Seq[AddFile],
      inserted: Seq[AddFile] = Nil
  ): Seq[AddFile] = {
    val images = touched.flatMap(imagesOf) ++
      fullyDeleted.map(file =>
        change(file, ChangeColumns.Delete, RowSelection.AllBut(file.deletionVector))
      ) ++
      inserted.map(change(_, ChangeColumns.Insert, RowSelection.AllBut(None)))
    if (images.isEmpty) Nil
    else {
      val snapshot = ofTable.snapshot
      val schema = transaction.schema // old rows have added columns, too, with nulls
      val source = ListedChanges(snapshot.table, snapshot.version, images.toIndexedSeq)
      new CopiedRows(ofTable.spark, transaction).write(
        s"write the change data of ${images.size} files",
        schema.all.add(ChangeColumns.changeTypeField),
        options => new ChangesScanBuilder(ofTable.spark, source, schema, options),
        transaction.changeSpec
      )
    }
  }

  /** The rows deleted by this change are those of the new vector that are not in the old one. */
  private def imagesOf(touched: MergedFile): Seq[CommittedChange] = {
    val file = ofTable.filesRead(touched.path)
    def only(vector: DeletionVectorDescriptor): RowSelection =
      RowSelection.Only(vector, file.deletionVector)
    touched.separateVectors match {
      case Some((deleted, updated)) =>
        Seq(
          change(file, ChangeColumns.Delete, RowSelection.Only(deleted, except = None)),
          change(file, ChangeColumns.UpdatePreimage, RowSelection.Only(updated, except = None))
        )
      case None =>
        val vector = touched.keptVector.orElse(touched.rewriteVector)
        val rows = vector.fold[RowSelection](RowSelection.AllBut(file.deletionVector))(only)
        val isUpdate = touched.updated > 0
        Seq(change(
          file,
          if (isUpdate) ChangeColumns.UpdatePreimage else ChangeColumns.Delete,
          rows
        ))
    }
  }

  private def change(
      file: AddFile,
      changeType: String,
      rows: RowSelection
  ): CommittedChange = CommittedChange(
    FileChange(file.copy(deletionVector = None), Some(changeType), rows),
    ofTable.snapshot.version,
    ofTable.snapshot.timestampMs
  )
}
