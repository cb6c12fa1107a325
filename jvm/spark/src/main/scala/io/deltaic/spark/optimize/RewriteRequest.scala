package io.deltaic.spark.optimize

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.curve.{HilbertCurve, RowOrder, ZOrderCurve}
import io.deltaic.spark.util.Json

/** A command that rewrites files of a table without changing its rows. */
private[spark] trait RewriteCommand {

  /** The name of the statement. */
  def command: String

  /** @return the metrics of the result */
  def run(spark: SparkSession, log: DeltaLog): ObjectNode
}

/**
 * One that selects the files by the definition of the table, which it does not change.
 *
 * @param predicate which partitions it rewrites, as SQL
 */
private[spark] trait RewriteRequest extends RewriteCommand {
  def predicate: Option[String]

  override def run(spark: SparkSession, log: DeltaLog): ObjectNode =
    new TableRewrite(spark, log, this).run()

  private[optimize] def settings(spark: SparkSession): OptimizeSettings = OptimizeSettings.of(spark)

  /** The files of a version that the command considers; none for those in the partitions of the predicate. */
  private[optimize] def considered(
      spark: SparkSession,
      snapshot: Snapshot
  ): Option[IndexedSeq[AddFile]] =
    None

  /**
   * @param shown the predicate as the history shows it
   * @param clusteredBy the columns that the table is clustered by
   */
  private[optimize] def operation(
      shown: Option[String],
      clusteredBy: Seq[Seq[String]]
  ): OperationInfo

  /**
   * The files that may be rewritten.
   *
   * @param files in the partitions of the predicate
   */
  private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate]

  /** The order that it gives to the rows of a partition; none if they stay in theirs. */
  private[optimize] def order(table: RewrittenTable): Option[RowOrder] = None

  /** Whether a change of rows that commits later takes an ordered rewrite back if it does not find its rows. */
  private[optimize] def canBeTakenBack: Boolean = false
}

/** What a request needs of the table to select files. */
private[optimize] trait RewrittenTable {
  def settings: OptimizeSettings

  /** The columns, which include those that the request names. */
  def columns: StructType

  /** The columns that it is clustered by, by their names, outermost first. */
  def clusteredBy: Seq[Seq[String]]

  def clusterSelection: ClusterSelection

  /** Which of some files hold columns that the table no longer has, by their paths. */
  def withDroppedColumns(files: Seq[AddFile]): Set[String]

  /** Which of some files hold columns in another type than the table has, by their paths. */
  def withOlderTypes(files: Seq[AddFile]): Set[String]
}

/**
 * OPTIMIZE: compacts small files, and rewrites heavily deleted ones; or orders all rows of a partition; or clusters
 * the rows of a clustered table that are not clustered yet.
 *
 * @param isFull whether all files of a clustered table are clustered again
 * @param zOrderBy the columns of ZORDER BY, by their name parts
 */
private[spark] final case class OptimizeRequest(
    predicate: Option[String] = None,
    isFull: Boolean = false,
    zOrderBy: Seq[Seq[String]] = Nil
) extends RewriteRequest {

  override def command: String = "OPTIMIZE"

  override private[optimize] def operation(
      shown: Option[String],
      clusteredBy: Seq[Seq[String]]
  ): OperationInfo = OperationInfo(
    command,
    Map(
      "predicate" -> Json.of(shown.toSeq).toString,
      "zOrderBy" -> RowOrder.names(zOrderBy),
      "clusterBy" -> RowOrder.names(clusteredBy),
      "auto" -> "false"
    ) ++ Option.when(isFull || clusteredBy.nonEmpty)("isFull" -> isFull.toString)
  )

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate] =
    if (zOrderBy.nonEmpty) files.map(RewriteCandidate.required)
    else if (isFull) files.filter(ClusterTags.mayCluster).map(RewriteCandidate.required)
    else if (table.clusteredBy.nonEmpty) table.clusterSelection.incremental(files)
    else files.flatMap(RewriteCandidate.ofCompaction(_, table.settings))

  override private[optimize] def order(table: RewrittenTable): Option[RowOrder] =
    if (zOrderBy.nonEmpty) Some(RowOrder.along(ZOrderCurve, table.columns, zOrderBy))
    else RewriteRequest.clusteringOrder(table)
}

/** REORG with PURGE: rewrites the files that hold deleted rows or dropped columns. */
private[spark] final case class PurgeRequest(predicate: Option[String] = None)
    extends RewriteRequest {

  override def command: String = "REORG"

  override private[optimize] def operation(
      shown: Option[String],
      clusteredBy: Seq[Seq[String]]
  ): OperationInfo = OperationInfo(
    command,
    Map("predicate" -> Json.of(shown.toSeq).toString, "applyPurge" -> "true")
  )

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate] = {
    val (withVectors, others) = files.partition(_.deletionVector.isDefined)
    val dropped = table.withDroppedColumns(others)
    (withVectors ++ others.filter(file => dropped(file.path))).map(RewriteCandidate.required)
  }
}

private[optimize] object RewriteRequest {

  /** The order of the rows of a clustered table. */
  def clusteringOrder(table: RewrittenTable): Option[RowOrder] =
    Option.when(table.clusteredBy.nonEmpty)(RowOrder(HilbertCurve, table.clusteredBy))

  /** The rows do not change. */
  def options(settings: OptimizeSettings): Map[String, String] =
    Map("datachange" -> "false", "checkstatistics" -> settings.checksStatistics.toString)
}
