package io.deltaic.spark.optimize

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.OperationInfo

/**
 * REORG before a feature is dropped: rewrites the files that only readers with the feature read.
 *
 * @param feature `deletionVectors` or `typeWidening`
 */
private[spark] final case class DowngradeRequest(feature: String) extends RewriteRequest {
  import DowngradeRequest._

  override def command: String = "REORG"
  override def predicate: Option[String] = None

  override private[optimize] def operation(
      shown: Option[String],
      clusteredBy: Seq[Seq[String]]
  ): OperationInfo = OperationInfo(
    command,
    Map("predicate" -> "[]", "applyPurge" -> (feature == DeletionVectors).toString)
  )

  override private[optimize] def considered(
      spark: SparkSession,
      snapshot: Snapshot
  ): Option[IndexedSeq[AddFile]] =
    Option.when(feature == DeletionVectors) {
      snapshot.adds.filter(_.deletionVector.isDefined).toIndexedSeq
    }

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate] = {
    val rewritten = feature match {
      case DeletionVectors => files
      case TypeWidening =>
        val older = table.withOlderTypes(files)
        files.filter(file => older(file.path))
      case other => throw new IllegalArgumentException(s"no file is rewritten without $other")
    }
    rewritten.map(RewriteCandidate.required)
  }
}

private[spark] object DowngradeRequest {
  private val DeletionVectors = "deletionVectors"
  private val TypeWidening = "typeWidening"
}
