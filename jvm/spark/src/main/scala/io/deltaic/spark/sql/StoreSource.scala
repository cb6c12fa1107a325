package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType, LeftAnti, RightOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{CountedRows, JobShims, RowCounter, SessionShims, StoredRows}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.{Row, SparkSession => AnySparkSession}

import io.deltaic.replay.Snapshot
import io.deltaic.spark.SessionSettings
import io.deltaic.spark.catalog.{DeltaicTable, MergeTarget}
import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.write.SessionWriteOptions

/**
 * A MERGE whose source is run once, and its rows kept by the executors, before the MERGE is planned: then
 * they are the same however often they are read, and it is known how large they are. Should an executor
 * be lost with rows of it, the statement fails.
 *
 * @param merge the plan that Spark has made of the statement
 * @param source a part of it
 * @param counter of its rows, to be told how long it took to store them
 * @param table into which rows are merged
 */
private[spark] final case class MergeFromStoredRows(
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
    val job = JobShims.name("MERGE", "store the rows of the source", table)
    val stored = JobShims.described(spark, job)(StoredRows.of(spark, source))
    try {
      counter.storingTimeMs = System.currentTimeMillis() - startedAtMs
      val planned = merge.transform { case rows if rows eq source => stored.plan }
      JobShims.calledAs(spark, "MERGE")(SessionShims.run(spark, planned).collect().toSeq)
    } finally stored.release()
  }
}

/**
 * Has the source of a MERGE stored that would be read once because it may be another one the next time,
 * or is dear to read, where the table is so large that its keys are worth it. A MERGE that was made before is
 * left as it is, to be skipped.
 *
 * {{{
 *   WriteDelta t                          MergeFromStoredRows s
 *   +- MergeRows                             WriteDelta t
 *      +- Join t.k = s.k         =>          +- MergeRows
 *         :- t                                  +- Join t.k = s.k
 *         +- s                                     :- t
 *                                                  +- s
 * }}}
 */
private[spark] final case class StoreSource(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case write @ WriteDelta(_, _, query, _, _, _, _) if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange =>
          storing(write, query, change.snapshot).getOrElse(write)
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      storing(merge, query, table.table.snapshot).getOrElse(merge)
    case other => other
  }

  /** The MERGE with its source stored, if that is worth it. */
  private def storing(
      merge: LogicalPlan,
      query: LogicalPlan,
      target: Snapshot
  ): Option[MergeFromStoredRows] =
    if (!isLarge(target) || new SessionWriteOptions(spark, Map.empty).isApplied(target)) None
    else
      for {
        join <- query.collectFirst { case join: Join if looksUp(join.joinType) => join }
        pairs = join.condition.map(KeyPair.equated(_, join.left, join.right)).getOrElse(Nil)
        (counted, source) <- join.collectFirst { case Filter(c: CountedRows, rows) => (c, rows) }
        if pairs.nonEmpty && canBeStored(source, target) && KeySource.mayBeStored(spark, source)
      } yield MergeFromStoredRows(
        merge,
        source,
        counted.counter,
        target.table.toString,
        CountChanges.columnsOf(merge)
      )

  /** Whether rows of the table that match nothing are left alone. */
  private def looksUp(joinType: JoinType): Boolean = joinType match {
    case Inner | RightOuter | LeftAnti => true
    case _ => false
  }

  private def isLarge(target: Snapshot): Boolean = {
    val least =
      SessionSettings.bytes(spark, "rowLevel.storedSource.minTableBytes", DefaultMinTableBytes)
    least >= 0 && target.size.forall(_.sizeBytes >= least)
  }

  /**
   * What it reads of the target itself, other commits may change: they are asked about the scans of the
   * statement, of which those of stored rows are none.
   */
  private def canBeStored(source: LogicalPlan, target: Snapshot): Boolean =
    source.resolved && !source.isStreaming && source.collectWithSubqueries {
      case ExtractV2Table(table: DeltaicTable) if table.log.table == target.table => table.name
      case reference: CTERelationRef => reference.nodeName
    }.isEmpty

  private val DefaultMinTableBytes = 64L << 20
}
