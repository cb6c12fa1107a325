package io.deltaic.spark.rowlevel

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.AddFile
import io.deltaic.spark.changes._
import io.deltaic.spark.write.WriteTransaction

/**
 * Writes the rows that a change ends into change data files, as they were (Protocol § Change Data
 * Files).
 *
 * Spark hands a writer the position of an old row and no more of it. So the rows are read once more,
 * from the files that are touched and nothing else of these, and only where there is a feed: tables
 * without one pay nothing.
 */
private[rowlevel] final class ImageRecorder(
    change: RowLevelChange,
    transaction: WriteTransaction,
    vectors: DeletionVectorStore
) {

  /** @param deleted rows that are gone, by the path of their file, and `updated` those that changed */
  def record(
      deleted: Map[String, DeletionVector],
      updated: Map[String, DeletionVector]
  ): Seq[AddFile] = {
    val images = of(deleted, ChangeColumns.Delete) ++ of(updated, ChangeColumns.UpdatePreimage)
    if (images.isEmpty) Nil
    else {
      val snapshot = change.snapshot
      val schema = transaction.schema // rows have what the commit adds, too: as nulls
      val source = ListedChanges(snapshot.table, snapshot.version, images.toIndexedSeq)
      new MovedRows(change.spark, transaction).write(
        schema.all.add(ChangeColumns.changeTypeField),
        options => new ChangesScanBuilder(change.spark, source, schema, options),
        transaction.changeSpec
      )
    }
  }

  private def of(rows: Map[String, DeletionVector], changeType: String): Seq[CommittedChange] =
    rows.toSeq.sortBy(_._1).map { case (path, positions) =>
      val file = change.filesRead(path).copy(deletionVector = None)
      val selected = RowSelection.Only(vectors.inline(positions), except = None)
      val snapshot = change.snapshot
      CommittedChange(
        FileChange(file, Some(changeType), selected),
        snapshot.version,
        snapshot.timestampMs
      )
    }
}
