package io.deltaic.spark.rowlevel

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.AddFile
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
    transaction: WriteTransaction,
    vectors: DeletionVectorStore
) {

  /**
   * @param deleted rows that are gone, by the path of their file, and `updated` those that changed
   * @param ended files of which all rows are gone, and `inserted` those of which all begin
   */
  def record(
      deleted: Map[String, DeletionVector],
      updated: Map[String, DeletionVector],
      ended: Seq[AddFile],
      inserted: Seq[AddFile] = Nil
  ): Seq[AddFile] = {
    val images = of(deleted, ChangeColumns.Delete) ++ of(updated, ChangeColumns.UpdatePreimage) ++
      ended.map { file =>
        val all = RowSelection.AllBut(file.deletionVector)
        change(file.copy(deletionVector = None), ChangeColumns.Delete, all)
      } ++
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

  private def of(rows: Map[String, DeletionVector], changeType: String): Seq[CommittedChange] =
    rows.toSeq.sortBy(_._1).map { case (path, positions) =>
      val file = ofTable.filesRead(path).copy(deletionVector = None)
      change(file, changeType, RowSelection.Only(vectors.inline(positions), except = None))
    }

  private def change(
      file: AddFile,
      changeType: String,
      rows: RowSelection
  ): CommittedChange = CommittedChange(
    FileChange(file, Some(changeType), rows),
    ofTable.snapshot.version,
    ofTable.snapshot.timestampMs
  )
}
