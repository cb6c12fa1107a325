package io.deltaic.spark

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkStrategy
import org.apache.spark.sql.{SparkSession, classic}

import io.deltaic.spark.rowlevel.MetadataOnlyDelete
import io.deltaic.spark.scan.DeletionVectorStrategy
import io.deltaic.spark.sql._
import io.deltaic.spark.stream.StreamStrategy
import io.deltaic.spark.write.{RecordReads, SkipAppliedWrites}

/**
 * The rules and strategies that [[DeltaicExtension]] adds to a session, and that [[SessionRequirements]] requires in
 * it. Each list goes to a hook that every kind of session has (docs/decisions/0032).
 */
private[spark] object SessionRules {
  type Builder = SparkSession => Rule[LogicalPlan]

  val resolution: Seq[Builder] = Seq(
    ResolveTableChanges(_),
    _ => ResolvePathTimeTravel,
    _ => PlanConstraints,
    _ => PlanShowStatements,
    _ => PlanTruncation,
    s => EvolveWrittenColumns(own(s)),
    s => ReplaceMatchingRows(own(s)),
    _ => ResolveViewTargets,
    _ => CheckUnsupportedDml,
    s => ResolveChangeTargets(own(s)),
    _ => EvolveMergedColumns,
    s => RewriteSaveAsTable(own(s)),
    ComputeWrittenColumns(_),
    ComputeChangedColumns(_)
  )

  val postHocResolution: Seq[Builder] = Seq(
    _ => PinAnalyzedSchema,
    s => PinStatementSnapshot(own(s)),
    _ => ProjectNondeterministicValues,
    s => MaterializeMergeSource(own(s)),
    s => PruneMergeTarget(own(s)),
    _ => ReportAffectedRows,
    _ => ResolveReplaceWhere,
    s => PlanTableLike(own(s))
  )

  val planNormalization: Seq[Builder] = Seq(_ => RefuseOtherTargets, _ => PinQuerySnapshots)

  val optimizer: Seq[Builder] = Seq(
    s => ReadFreshRows(own(s)),
    _ => RewriteReplaceWhere,
    _ => AlignScans,
    s => RebalanceWrites(own(s))
  )

  val strategies: Seq[SparkStrategy] = Seq(
    RecordReads,
    SkipAppliedWrites,
    DescribeJobs,
    MetadataOnlyDelete,
    DeletionVectorStrategy,
    StreamStrategy,
    AffectedRowsStrategy
  )

  /** The number of rules and strategies. */
  lazy val count: Int =
    Seq(resolution, postHocResolution, planNormalization, optimizer, strategies).map(_.length).sum

  /** Whether it names one of our optimizer rules, as in `spark.sql.optimizer.excludedRules`. */
  def isOptimizerRule(name: String): Boolean = optimizerRules.contains(name)

  private val optimizerRules: Set[String] =
    Set(
      classOf[ReadFreshRows].getName,
      RewriteReplaceWhere.ruleName,
      AlignScans.ruleName,
      classOf[RebalanceWrites].getName
    )

  private def own(session: SparkSession): classic.SparkSession =
    session.asInstanceOf[classic.SparkSession]
}
