package io.deltaic.spark.rowlevel

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.changes._
import io.deltaic.spark.write.WriteTransaction

/**
 * Writes the rows that a change ends into change data files, as they were (Protocol § Change Data
 * Files), and those that begin where no task has done so.
 *
 * Spark hands a writer the position of an old row and no more of it. So the rows are read once more,
 * from the files that are touched and nothing else of these, and only where there is a feed: tables
 * without one pay nothing.
 */
private[rowlevel] final class ImageRecorder(
    ofTable: RowLevelChange,
    transaction: WriteTransaction
) {

  /**
   * @param touched files some of whose rows are gone or changed
   * @param ended other files, of which all rows are gone
   * @param inserted files of which all rows begin
   */
  def record(
      touched: Seq[MergedFile],
      ended: Seq[AddFile],
      inserted: Seq[AddFile] = Nil
  ): Seq[AddFile] = {
    val images = touched.flatMap(imagesOf) ++
      ended.map(file =>
        change(file, ChangeColumns.Delete, RowSelection.AllBut(file.deletionVector))
      ) ++
      inserted.map(change(_, ChangeColumns.Insert, RowSelection.AllBut(None)))
    if (images.isEmpty) Nil
    else {
      val snapshot = ofTable.snapshot
      val schema = transaction.schema // rows have what the commit adds, too: as nulls
      val source = ListedChanges(snapshot.table, snapshot.version, images.toIndexedSeq)
      new MovedRows(ofTable.spark, transaction).write(
        s"write the change data of ${images.size} files",
        schema.all.add(ChangeColumns.changeTypeField),
        options => new ChangesScanBuilder(ofTable.spark, source, schema, options),
        transaction.changeSpec
      )
    }
  }

  /** Rows that end now are those of the new vector that are not in the old one. */
  private def imagesOf(touched: MergedFile): Seq[CommittedChange] = {
    val file = ofTable.filesRead(touched.path)
    def only(vector: DeletionVectorDescriptor): RowSelection =
      RowSelection.Only(vector, file.deletionVector)
    touched.apart match {
      case Some((deleted, updated)) =>
        Seq(
          change(file, ChangeColumns.Delete, RowSelection.Only(deleted, except = None)),
          change(file, ChangeColumns.UpdatePreimage, RowSelection.Only(updated, except = None))
        )
      case None =>
        val vector = touched.keptUnder.orElse(touched.rewrittenBy)
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
