package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkStrategy
import org.apache.spark.sql.internal.{BaseSessionStateBuilder, SessionState, SessionStateBuilder}

/** Sessions whose state was not built by Spark's own builder. */
object ForeignSessions {

  /** A new session like `spark` with all of its rules and strategies except those of one class. */
  def without(spark: SparkSession, rule: String): SparkSession = {
    val session = spark.newSession()
    session.sessionState
    val state = classOf[SparkSession].getDeclaredField("sessionState")
    state.setAccessible(true)
    state.set(session, new Builder(session, None, rule).build())
    session
  }

  private final class Builder(
      session: SparkSession,
      parent: Option[SessionState],
      leftOut: String
  ) extends SessionStateBuilder(session, parent) {
    private def retained[A](rules: Seq[A]): Seq[A] = rules.filter(_.getClass.getName != leftOut)

    override protected def customResolutionRules: Seq[Rule[LogicalPlan]] =
      retained(super.customResolutionRules)
    override protected def customPostHocResolutionRules: Seq[Rule[LogicalPlan]] =
      retained(super.customPostHocResolutionRules)
    override protected def customPreCBORules: Seq[Rule[LogicalPlan]] =
      retained(super.customPreCBORules)
    override protected def planNormalizationRules: Seq[Rule[LogicalPlan]] =
      retained(super.planNormalizationRules)
    override protected def customPlanningStrategies: Seq[SparkStrategy] =
      retained(super.customPlanningStrategies)
    override protected def newBuilder
        : (SparkSession, Option[SessionState]) => BaseSessionStateBuilder =
      new Builder(_, _, leftOut)
  }
}
