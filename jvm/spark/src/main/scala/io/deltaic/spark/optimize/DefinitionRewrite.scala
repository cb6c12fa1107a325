package io.deltaic.spark.optimize

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.AddFile
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.{CommitFiles, OperationInfo, ReadSet}
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.schema.{PartitionKey, TableSchema}
import io.deltaic.spark.util.Json
import io.deltaic.spark.write.{NewFiles, WriteIntent, WriteTransaction}

/**
 * Rewrites files in the commit that changes the definition of their table, as Python plans it, so that no version
 * has files that do not fit its definition. It is one commit, whatever the size of batches is.
 */
private[spark] trait DefinitionRewrite extends RewriteCommand {

  protected def operation: OperationInfo

  /** Whether a file does not fit the new definition. */
  protected def isUnfit(file: AddFile, transaction: WriteTransaction): Boolean

  override def run(spark: SparkSession, log: DeltaLog): ObjectNode = {
    val startedAtMs = System.currentTimeMillis()
    val snapshot = log.latest()
    val settings = OptimizeSettings.of(spark)
    val before = TableSchema.of(snapshot)
    val transaction = new WriteTransaction(
      spark,
      log,
      Some(snapshot),
      WriteIntent(operation, mode = "rewrite", changesRows = false)
        .withOptions(operation.options ++ RewriteRequest.options(settings))
    )
    val considered = log.withReadableFiles(snapshot)(_.adds.toVector)
    val files = considered.filter(isUnfit(_, transaction))
    val partitions = new PartitionKey(before, sessionZone(spark))
    val groups = FileGroup.ofPartitions(partitions, files.groupBy(partitions.of).valuesIterator)
    val adds =
      if (groups.isEmpty) Nil
      else
        new FileRewrite(transaction, settings, order = None, before).run(groups)
          .map { case (output, add) => ClusterTags.copied(add, output.filesIn(groups)) }
    val deletionTimestampMs = System.currentTimeMillis()
    val removes = files.map(_.remove(deletionTimestampMs, dataChange = false))
    try
      transaction.commit(
        CommitFiles(removes, adds),
        NewFiles(adds),
        ReadSet.everything,
        RewriteMetrics.ofCommit(adds, transaction.copySpec)
      )
    catch {
      case e: Throwable =>
        transaction.abort(NewFiles(adds), tasksLost = false)
        throw e
    }
    RewriteMetrics(startedAtMs, considered, groups.size, numBatches = 1, files, adds, Map.empty)
      .json(spark, transaction.schema, transaction.copySpec)
  }
}

/** Removes column mapping: all files are rewritten, so that they name the columns as the table does. */
private[spark] object ColumnMappingRemoval extends DefinitionRewrite {
  override def command: String = operation.name

  override protected def operation: OperationInfo = OperationInfo("REMOVE COLUMN MAPPING")

  override protected def isUnfit(file: AddFile, transaction: WriteTransaction): Boolean = true
}

/**
 * REORG with UPGRADE UNIFORM: the table becomes compatible with a version of Iceberg. Files without the tag of that version
 * are rewritten, as are those with deletion vectors if the version does not allow them.
 *
 * @param compatVersion the version, as the statement has it
 */
private[spark] final case class UniformUpgrade(compatVersion: String) extends DefinitionRewrite {
  override def command: String = "REORG"

  override protected def operation: OperationInfo = OperationInfo(
    "REORG TABLE UPGRADE UNIFORM",
    Map("properties" -> Json.of(Map(
      s"delta.enableIcebergCompatV$compatVersion" -> "true"
    )).toString),
    options = Map("icebergcompatversion" -> compatVersion)
  )

  override protected def isUnfit(file: AddFile, transaction: WriteTransaction): Boolean = {
    val isTagged = transaction.copySpec.tags.forall { case (tag, value) =>
      file.tags.get(tag).contains(value)
    }
    !isTagged || CommitFiles.rows(file).isEmpty ||
    compatVersion != "3" && file.deletionVector.isDefined
  }
}
