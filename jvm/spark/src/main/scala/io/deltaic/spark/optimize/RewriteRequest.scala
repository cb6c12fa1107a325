package io.deltaic.spark.optimize

import io.deltaic.protocol.AddFile
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.util.Json

/**
 * A command that rewrites files of a table without changing its rows.
 *
 * @param predicate which partitions it rewrites, as SQL
 */
private[spark] sealed trait RewriteRequest {

  /** The name of the statement. */
  def command: String
  def predicate: Option[String]

  /** @param shown the predicate as the history shows it */
  private[optimize] def operation(shown: Option[String]): OperationInfo

  /**
   * The files that may be rewritten.
   *
   * @param files in the partitions of the predicate
   * @param withDroppedColumns which of some files hold columns that the table no longer has, by their paths
   */
  private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      settings: OptimizeSettings,
      withDroppedColumns: Seq[AddFile] => Set[String]
  ): IndexedSeq[RewriteCandidate]
}

/**
 * OPTIMIZE: compacts small files, and rewrites heavily deleted ones.
 *
 * @param isFull whether all files of a clustered table are clustered again
 */
private[spark] final case class OptimizeRequest(
    predicate: Option[String] = None,
    isFull: Boolean = false,
    zOrderBy: Seq[String] = Nil
) extends RewriteRequest {

  override def command: String = "OPTIMIZE"

  override private[optimize] def operation(shown: Option[String]): OperationInfo = OperationInfo(
    command,
    Map(
      "predicate" -> Json.of(shown.toSeq).toString,
      "zOrderBy" -> Json.of(zOrderBy).toString,
      "clusterBy" -> "[]",
      "auto" -> "false"
    ) ++ Option.when(isFull)("isFull" -> "true"),
    RewriteRequest.options
  )

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      settings: OptimizeSettings,
      withDroppedColumns: Seq[AddFile] => Set[String]
  ): IndexedSeq[RewriteCandidate] = files.flatMap(RewriteCandidate.ofCompaction(_, settings))
}

/** REORG with PURGE: rewrites the files that hold deleted rows or dropped columns. */
private[spark] final case class PurgeRequest(predicate: Option[String] = None)
    extends RewriteRequest {

  override def command: String = "REORG"

  override private[optimize] def operation(shown: Option[String]): OperationInfo = OperationInfo(
    command,
    Map("predicate" -> Json.of(shown.toSeq).toString, "applyPurge" -> "true"),
    RewriteRequest.options
  )

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      settings: OptimizeSettings,
      withDroppedColumns: Seq[AddFile] => Set[String]
  ): IndexedSeq[RewriteCandidate] = {
    val (withVectors, others) = files.partition(_.deletionVector.isDefined)
    val dropped = withDroppedColumns(others)
    (withVectors ++ others.filter(file => dropped(file.path))).map(RewriteCandidate.required)
  }
}

private[optimize] object RewriteRequest {

  /** The rows do not change. */
  val options: Map[String, String] = Map("datachange" -> "false")
}
