package io.deltaic.spark.sql.analysis.merge

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftAnti, RightOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.merge.{CountedRows, MaterializedMergeSource, RowCounter}
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.{Row, SparkSession => AnySparkSession}

import io.deltaic.replay.Snapshot
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.sql.analysis.ReportAffectedRows
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.SessionWriteOptions

/**
 * A MERGE whose source is materialized on the executors before the MERGE is planned: then
 * every read returns the same rows, and their size is known. If an executor with rows of it is
 * lost, the statement fails.
 *
 * @param merge the plan of the statement by Spark
 * @param source a part of it
 * @param counter of its rows, which also records the time of the materialization
 * @param table the target, for job descriptions
 */
private[spark] final case class MergeFromMaterializedSource(
    merge: LogicalPlan,
    source: LogicalPlan,
    counter: RowCounter,
    table: String,
    override val output: Seq[Attribute]
) extends LeafRunnableCommand {

  override def innerChildren: Seq[LogicalPlan] = Seq(merge)

  override def run(session: AnySparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[SparkSession]
    val startedAtMs = System.currentTimeMillis()
    val job = JobInternals.name("MERGE", "store the rows of the source", table)
    val stored = JobInternals.described(spark, job)(MaterializedMergeSource.of(spark, source))
    try {
      counter.storingTimeMs = System.currentTimeMillis() - startedAtMs
      val planned = merge.transform { case rows if rows eq source => stored.plan }
      JobInternals.calledAs(spark, "MERGE")(SessionInternals.run(spark, planned).collect().toSeq)
    } finally stored.release()
  }
}

/**
 * Materializes the source of a MERGE if it is not repeatable or is expensive to read, and if
 * the table is large enough for pruning by its keys to pay off. An already applied MERGE is not
 * changed, and is skipped.
 *
 * {{{
 *   WriteDelta t                          MergeFromMaterializedSource s
 *   +- MergeRows                             WriteDelta t
 *      +- Join t.k = s.k         =>          +- MergeRows
 *         :- t                                  +- Join t.k = s.k
 *         +- s                                     :- t
 *                                                  +- s
 * }}}
 */
private[spark] final case class MaterializeMergeSource(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case write @ WriteDelta(_, _, query, _, _, _, _) if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange =>
          materialized(write, query, change.snapshot).getOrElse(write)
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      materialized(merge, query, table.table.snapshot).getOrElse(merge)
    case other => other
  }

  /** The MERGE with its source materialized, if that pays off. */
  private def materialized(
      merge: LogicalPlan,
      query: LogicalPlan,
      target: Snapshot
  ): Option[MergeFromMaterializedSource] =
    if (!isLarge(target) || new SessionWriteOptions(spark, Map.empty).isAlreadyCommitted(target))
      None
    else
      for {
        join <- query.collectFirst { case join: Join if changesMatchesOnly(join.joinType) => join }
        pairs = join.condition.map(KeyPair.equated(_, join.left, join.right)).getOrElse(Nil)
        (counted, source) <- join.collectFirst { case Filter(c: CountedRows, rows) => (c, rows) }
        if pairs.nonEmpty && canBeStored(
          source,
          target
        ) && MergeSourceKeys.mayBeStored(spark, source)
      } yield MergeFromMaterializedSource(
        merge,
        source,
        counted.counter,
        target.table.toString,
        ReportAffectedRows.columnsOf(merge)
      )

  /** Whether rows of the table without a match are not changed. */
  private def changesMatchesOnly(joinType: JoinType): Boolean = joinType match {
    case Inner | RightOuter | LeftAnti => true
    case _ => false
  }

  private def isLarge(target: Snapshot): Boolean = {
    val minBytes =
      SessionSettings.bytes(spark, "merge.materializeSource.minTableBytes", DefaultMinTableBytes)
    minBytes >= 0 && target.size.forall(_.sizeBytes >= minBytes)
  }

  /**
   * A source that reads the target itself is not materialized: the conflict check uses the scans of the
   * statement, and those of the materialization are not among them.
   */
  private def canBeStored(source: LogicalPlan, target: Snapshot): Boolean =
    source.resolved && !source.isStreaming && source.collectWithSubqueries {
      case ExtractV2Table(table: DeltaicTable) if table.log.table == target.table => table.name
      case reference: CTERelationRef => reference.nodeName
    }.isEmpty

  private val DefaultMinTableBytes = 64L << 20
}
