package io.deltaic.spark.rowlevel

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.scan.TableScanBuilder
import io.deltaic.spark.scan.files.ListedFiles
import io.deltaic.spark.schema.ScanColumns
import io.deltaic.spark.write.WriteTransaction

/**
 * Copies the live rows of some files to new files: the purge of deletion vectors. With row tracking, the
 * rows keep their row IDs and commit versions.
 */
private[rowlevel] final class FileRewriter(
    spark: SparkSession,
    transaction: WriteTransaction,
    snapshot: Snapshot
) {

  /** @param files the files to rewrite, each with the vector of the rows to leave out */
  def rewrite(files: Seq[AddFile]): Seq[AddFile] =
    if (files.isEmpty) Nil
    else {
      val schema = transaction.schema
      val listed = ListedFiles(snapshot.table, snapshot.version, files.toIndexedSeq)
      val tracked = ScanColumns.rowTracking.take(transaction.copySpec.numRowTrackingColumns)
      new CopiedRows(spark, transaction).write(
        s"rewrite ${files.size} files without their deleted rows",
        StructType(schema.all ++ tracked),
        options => new TableScanBuilder(spark, listed, schema, options),
        transaction.copySpec
      )
    }
}
