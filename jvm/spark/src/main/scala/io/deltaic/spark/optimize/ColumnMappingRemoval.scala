package io.deltaic.spark.optimize

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.{CommitFiles, OperationInfo, ReadSet}
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.schema.{PartitionKey, TableSchema}
import io.deltaic.spark.write.{NewFiles, WriteIntent, WriteTransaction}

/**
 * Rewrites all files of a table with column mapping, so that they name the columns as the table does. The commit also
 * changes the definition, as Python plans it.
 */
private[spark] object ColumnMappingRemoval {

  /** @return the number of files that were rewritten */
  def run(spark: SparkSession, log: DeltaLog): Long = {
    val snapshot = log.latest()
    val settings = OptimizeSettings.of(spark)
    val mapped = TableSchema.of(snapshot)
    val transaction = new WriteTransaction(
      spark,
      log,
      Some(snapshot),
      WriteIntent(
        OperationInfo("REMOVE COLUMN MAPPING", Map.empty[String, String]),
        mode = "rewrite",
        changesRows = false
      ).withOptions(RewriteRequest.options(settings))
    )
    val files = log.withReadableFiles(snapshot)(_.adds.toVector)
    val partitions = new PartitionKey(mapped, sessionZone(spark))
    val groups = FileGroup.ofPartitions(partitions, files.groupBy(partitions.of).valuesIterator)
    val adds =
      if (groups.isEmpty) Nil
      else new FileRewrite(transaction, settings, order = None, mapped).run(groups).map(_._2)
    val deletionTimestampMs = System.currentTimeMillis()
    val removes = files.map(_.remove(deletionTimestampMs, dataChange = false))
    try {
      transaction.commit(
        CommitFiles(removes, adds),
        NewFiles(adds),
        ReadSet.everything,
        RewriteMetrics.sizes(adds)
      )
      files.size.toLong
    } catch {
      case e: Throwable =>
        transaction.abort(NewFiles(adds), tasksLost = false)
        throw e
    }
  }
}
