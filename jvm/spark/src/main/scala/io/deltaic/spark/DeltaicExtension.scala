package io.deltaic.spark

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkStrategy
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, classic}

import io.deltaic.spark.sql.analysis._
import io.deltaic.spark.sql.analysis.columns._
import io.deltaic.spark.sql.analysis.merge._
import io.deltaic.spark.sql.analysis.stream._
import io.deltaic.spark.sql.analysis.target._
import io.deltaic.spark.sql.optimizer._
import io.deltaic.spark.sql.parser._
import io.deltaic.spark.sql.planning._
import io.deltaic.spark.util.SparkVersions

/** What Deltaic adds to a Spark session; named in `spark.sql.extensions`. */
class DeltaicExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    SparkVersions.requireTested()
    FirstQueryClasses.loadInBackground()
    extensions.injectParser { (session, spark) =>
      new StatementParser(session.asInstanceOf[classic.SparkSession], spark)
    }
    // Not in the lists below, since no read depends on it alone: the parser marks CHANGES of SQL. Sessions with Hive
    // support do not have this hook in Spark 4.2.0.
    extensions.injectHintResolutionRule(_ => MarkTableChanges)
    DeltaicExtension.resolution.foreach(rule => extensions.injectResolutionRule(rule(_)))
    DeltaicExtension.postHocResolution
      .foreach(rule => extensions.injectPostHocResolutionRule(rule(_)))
    DeltaicExtension.planNormalization
      .foreach(rule => extensions.injectPlanNormalizationRule(rule(_)))
    DeltaicExtension.optimizer.foreach(rule => extensions.injectPreCBORule(rule(_)))
    DeltaicExtension.strategies
      .foreach(strategy => extensions.injectPlannerStrategy(_ => strategy))
    // Not in the lists either, since it replaces nothing of ours: without it, Spark 4.2.0 hangs.
    if (PythonUdfsOnRows.isNeeded(SPARK_VERSION)) extensions.injectColumnar(_ => PythonUdfsOnRows)
    TableChangesFunctions.inject(extensions)
  }
}

/**
 * The rules and strategies of the extension, in the order of Spark's phases. [[SessionRequirements]] requires them in
 * each session. Each list goes to a hook that every kind of session has (docs/decisions/0032).
 */
private[spark] object DeltaicExtension {
  type Builder = SparkSession => Rule[LogicalPlan]

  /**
   * Resolution, which Spark repeats with its own rules until the plan does not change. A rule therefore waits for what
   * it needs to be resolved, and the order matters only within one pass: Spark's own rules rewrite a DELETE, UPDATE or
   * MERGE in the pass in which the last part of it is resolved.
   */
  val resolution: Seq[Builder] = Seq(
    // Reads: CHANGES and table_changes(...) become reads of a change data feed.
    ResolveTableChanges(_),
    // Streams: gives a source the columns of its schema tracking log; after ResolveTableChanges.
    s => ResolveTrackedSchemas(own(s)),
    // Reads: delta.`/path` TIMESTAMP AS OF an expression.
    _ => ResolvePathTimeTravel,
    // ALTER TABLE ... ADD CONSTRAINT ... CHECK is validated and committed by Deltaic.
    _ => PlanConstraints,
    // SHOW CREATE TABLE, SHOW PARTITIONS, DESCRIBE EXTENDED.
    _ => PlanShowStatements,
    // TRUNCATE TABLE.
    _ => PlanTruncation,
    // Streams: plans each batch of a stream into a table as a write, which the analyzer resolves by itself.
    s => ResolveStreamingWrites(own(s)),
    // Writes: adds columns, widens types, and gives the write a table whose output columns Spark resolves.
    s => EvolveWrittenColumns(own(s)),
    // INSERT ... REPLACE USING and REPLACE ON; after EvolveWrittenColumns, which plans those that add columns.
    s => ReplaceMatchingRows(own(s)),
    // Changes: a view in the target is replaced by its table.
    _ => ResolveViewTargets,
    // Changes: refuses what remains unsupported; after ResolveViewTargets, which leaves such views in the plan.
    _ => CheckUnsupportedDml,
    // Changes: marks the statement, so that Spark does not rewrite it before the next rules are done with it.
    s => ResolveRowLevelTargets(own(s)),
    // MERGE: adds columns to the target; needs the mark of ResolveRowLevelTargets.
    _ => EvolveMergedColumns,
    // df.write.mode("overwrite").saveAsTable(name) of an existing table.
    s => RewriteSaveAsTable(own(s)),
    // Writes: generated and identity columns; after EvolveWrittenColumns.
    ComputeWrittenColumns(_),
    // UPDATE and MERGE: one assignment for each column, and the details of a MERGE for the history; removes the mark,
    // after EvolveMergedColumns.
    ComputeChangedColumns(_)
  )

  /** After resolution, once, in this order. Spark has rewritten DELETE, UPDATE and MERGE to `WriteDelta`. */
  val postHocResolution: Seq[Builder] = Seq(
    // Records with which columns relations have been analyzed.
    _ => PinAnalyzedSchema,
    // A statement reads its own table at the version that it changes.
    s => PinStatementSnapshot(own(s)),
    // Nondeterministic values are computed once for each row; removes the placeholders of values.
    _ => ProjectNondeterministicValues,
    // MERGE: stores the rows of a source that is not repeatable; after PinStatementSnapshot, which makes reads repeatable.
    s => MaterializeMergeSource(own(s)),
    // Changes: skips files of the target without a key of the source; after MaterializeMergeSource.
    s => PruneMergeTarget(own(s)),
    // Changes: returns the numbers of changed rows; after all rules that match a change at the root of the plan.
    _ => ReportAffectedRows,
    // Overwrites: records the SQL of the condition, which RewriteReplaceWhere and the history use.
    _ => ResolveReplaceWhere,
    // CREATE TABLE ... LIKE of a view or of a table of another provider.
    s => PlanTableLike(own(s))
  )

  /** Once for each query, before Spark looks for cached data. */
  val planNormalization: Seq[Builder] = Seq(
    // Refuses changes of targets that are not tables.
    _ => RefuseOtherTargets,
    // Queries of the result of VACUUM with DRY RUN.
    _ => ReadShownFiles,
    // All scans of a table in a query read one version.
    _ => PinQuerySnapshots
  )

  /** After filters and columns have been pushed down to scans, before writes are built. */
  val optimizer: Seq[Builder] = Seq(
    // Cached rows that are older than a commit of this process are read again.
    s => ReadFreshRows(own(s)),
    // Overwrites: passes the condition to the write.
    _ => RewriteReplaceWhere,
    // Scans in scalar subqueries read the same columns, so that Spark can merge the subqueries.
    _ => AlignScans,
    // Writes: shuffles rows for few large files.
    s => RebalanceWrites(own(s))
  )

  /** A plan is planned by the first strategy that returns a physical plan for it. */
  val strategies: Seq[SparkStrategy] = Seq(
    // Writes: records the scans of the query for the conflict check; plans nothing.
    RecordReadsStrategy,
    // Writes: skips those whose transaction identifier has been committed; before all that plan a write.
    SkipCommittedWrites,
    // Changes: describes the jobs of the query; plans the same command again, inside.
    DescribeJobs,
    // DELETE: removes files whose rows are all deleted, without reading them.
    MetadataOnlyDelete,
    // Scans: filters deleted rows.
    DeletionVectorStrategy,
    // Streams: plans a micro-batch as a scan.
    StreamStrategy,
    // Writes: coalesces the shuffle of an optimized write where adaptive execution is off.
    OptimizedWriteStrategy,
    // Changes: runs a change and returns the numbers of its rows.
    AffectedRowsStrategy,
    // VACUUM: the result of a DRY RUN, which may be large.
    VacuumDryRunStrategy
  )

  /** The number of rules and strategies. */
  lazy val count: Int =
    Seq(resolution, postHocResolution, planNormalization, optimizer, strategies).map(_.length).sum

  /** The names of the optimizer rules, as in `spark.sql.optimizer.excludedRules`. */
  def optimizerRuleNames(session: SparkSession): Set[String] =
    optimizer.map(_(session).ruleName).toSet

  private def own(session: SparkSession): classic.SparkSession =
    session.asInstanceOf[classic.SparkSession]
}
