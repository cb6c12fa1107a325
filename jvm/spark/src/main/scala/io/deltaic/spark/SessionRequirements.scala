package io.deltaic.spark

import java.util.{Collections, Map => JMap, WeakHashMap}

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.sql.parser.StatementParser
import io.deltaic.spark.util.SparkVersions

/**
 * What a session must have before it reads or writes a table: a tested Spark version, our catalog, our parser, and all
 * of our rules. Statements of any other session are refused.
 *
 * Settings that may change at run time are checked each time, the rest once per session.
 */
private[spark] object SessionRequirements {

  /** Set only by tests of the other checks, for which this one must be off. */
  private val Unchecked = "deltaic.session.unchecked"

  private val SessionCatalog = SQLConf.V2_SESSION_CATALOG_IMPLEMENTATION.key
  private val Catalog = """spark\.sql\.catalog\.[^.]+""".r
  private val ExcludedRules = SQLConf.OPTIMIZER_EXCLUDED_RULES.key

  /** Settings by which Spark analyzes plans without the rules of extensions. */
  private val OtherAnalyzers = Seq(
    "spark.sql.analyzer.singlePassResolver.enabled",
    "spark.sql.analyzer.singlePassResolver.enabledTentatively"
  )

  private val complete: JMap[AnyRef, java.lang.Boolean] =
    Collections.synchronizedMap(new WeakHashMap)

  /** @param table what the statement reads or writes, for the error */
  def require(spark: SparkSession, table: => String): Unit =
    if (!java.lang.Boolean.getBoolean(Unchecked)) {
      val state = spark.sessionState
      if (!complete.containsKey(state)) {
        SparkVersions.requireTested()
        requireExtension(spark, table)
        requireCatalog(state.conf)
        complete.put(state, true)
      }
      requireNothingSwitchedOff(spark)
    }

  private def requireExtension(spark: SparkSession, table: => String): Unit = {
    val state = spark.sessionState
    val lacking = Seq(
      DeltaicExtension.resolution -> state.analyzer.extendedResolutionRules,
      DeltaicExtension.postHocResolution -> state.analyzer.postHocResolutionRules,
      DeltaicExtension.planNormalization -> state.planNormalizationRules,
      DeltaicExtension.optimizer -> state.optimizer.preCBORules
    ).flatMap { case (ours, all) => namesOf(ours.map(_(spark))).diff(namesOf(all)) } ++
      DeltaicExtension.strategies.diff(state.planner.strategies).map(_.getClass.getName) ++
      Option.when(!parsesOurStatements(spark))(classOf[StatementParser].getName)
    if (lacking.length == DeltaicExtension.count + 1)
      throw DeltaicException(
        "DELTAIC_EXTENSION_MISSING",
        Map("table" -> table, "operation" -> "each statement")
      )
    else if (lacking.nonEmpty) throw rulesMissing(lacking, LeftOut)
  }

  private val LeftOut =
    "Something else in this session leaves them out, such as another extension: name " +
      "io.deltaic.spark.DeltaicExtension last in spark.sql.extensions, or remove the other."

  private def namesOf(rules: Seq[Rule[LogicalPlan]]): Seq[String] = rules.map(_.getClass.getName)

  /** Another extension's parser may wrap ours if it delegates the statements that it does not parse. */
  private def parsesOurStatements(spark: SparkSession): Boolean =
    try StatementParser.isBehind(spark.sessionState.sqlParser)
    catch { case NonFatal(_) => false }

  /**
   * Another implementation of `spark_catalog` may wrap ours, and ours may have another name. A session that has
   * neither is refused.
   */
  private def requireCatalog(settings: SQLConf): Unit = {
    val isThere = settings.getAllConfs.exists {
      case (SessionCatalog, implementation) => implementation != "builtin"
      case (setting, implementation) =>
        Catalog.matches(setting) && implementation == classOf[DeltaicCatalog].getName
    }
    if (!isThere)
      throw DeltaicException(
        "DELTAIC_CATALOG_MISSING",
        Map("setting" -> SessionCatalog, "required" -> classOf[DeltaicCatalog].getName)
      )
  }

  private def requireNothingSwitchedOff(spark: SparkSession): Unit = {
    val settings = spark.sessionState.conf
    settings.optimizerExcludedRules.foreach { names =>
      val ours = DeltaicExtension.optimizerRuleNames(spark)
      val excluded = names.split(',').map(_.trim).filter(ours).toSeq
      if (excluded.nonEmpty)
        throw rulesMissing(excluded, s"Remove them from the setting $ExcludedRules.")
    }
    OtherAnalyzers.filter(settings.getConfString(_, "false").equalsIgnoreCase("true"))
      .foreach { setting =>
        throw rulesMissing(Seq("those of the analysis"), s"Set $setting to false.")
      }
  }

  private def rulesMissing(rules: Seq[String], remedy: String): DeltaicThrowable = {
    val names = rules.map(rule => rule.substring(rule.lastIndexOf('.') + 1).stripSuffix("$"))
    DeltaicException(
      "DELTAIC_RULES_MISSING",
      Map("rules" -> names.mkString(", "), "remedy" -> remedy)
    )
  }
}
