package io.deltaic.spark

import java.util.{List => JList}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{
  CacheInternals,
  JobInternals,
  PaddingInternals,
  SessionInternals
}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, classic}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.scan.files.QuerySnapshots
import io.deltaic.spark.schema.AnalyzedColumns
import io.deltaic.spark.write.StatementTransaction

/**
 * DELETE, UPDATE and MERGE of `DeltaTable`, run as the same plans that Spark creates for these
 * statements in SQL. Python calls it, as it calls [[PythonApi]].
 *
 * The methods return the result of the statement: how many rows it changed.
 */
object RowLevelStatements {

  /** Deletes the rows for which `condition` is true, all rows when it is null. */
  def delete(target: classic.DataFrame, condition: Column): DataFrame = {
    val spark = target.sparkSession
    val matching = expression(spark, condition).getOrElse(Literal.TrueLiteral)
    JobInternals.calledAs(spark, "DeltaTable.delete") {
      SessionInternals.run(spark, DeleteFromTable(targetOf(target), matching))
    }
  }

  /**
   * Sets columns of the rows for which `condition` is true, or of all rows when it is null.
   *
   * @param columns names of columns or nested fields, quoted as in SQL
   * @param values the new values, in the same order
   */
  def update(
      target: classic.DataFrame,
      condition: Column,
      columns: JList[String],
      values: JList[Column]
  ): DataFrame = {
    val spark = target.sparkSession
    val set = assignments(spark, columns, values)
    JobInternals.calledAs(spark, "DeltaTable.update") {
      SessionInternals.run(spark, UpdateTable(targetOf(target), set, expression(spark, condition)))
    }
  }

  /** Builds a MERGE; the clauses are added to what it returns. */
  def merge(
      target: classic.DataFrame,
      source: classic.DataFrame,
      condition: Column
  ): MergeStatement =
    new MergeStatement(target, source, condition)

  /**
   * The rows of a table's DataFrame under the attributes of an earlier DataFrame of it, so that columns of either
   * resolve; null if the table was replaced or its schema changed since.
   */
  def withColumnsOf(earlier: classic.DataFrame, rows: classic.DataFrame): DataFrame = {
    val before = earlier.queryExecution.analyzed
    val renewed = for {
      (relation, table) <- relationIn(rows.queryExecution.analyzed)
      (old, oldTable) <- relationIn(before)
      if oldTable.hasSameColumns(table)
    } yield before.transform { case same if same eq old => relation.copy(output = old.output) }
    renewed.map(SessionInternals.run(rows.sparkSession, _)).orNull
  }

  private def relationIn(plan: LogicalPlan): Option[(DataSourceV2Relation, DeltaicTable)] =
    plan.collectFirst { case relation @ ExtractV2Table(table: DeltaicTable) => (relation, table) }

  /**
   * Spark plans an insert-only MERGE as an append, which a table loaded by path does not accept. In a DataFrame
   * Spark pads CHAR columns above the table; in a statement it pads them below the conditions.
   */
  private[spark] def targetOf(df: classic.DataFrame): LogicalPlan =
    PaddingInternals.withoutPadding(df.queryExecution.analyzed).transform {
      case relation @ ExtractV2Table(table: DeltaicTable) =>
        relation.copy(
          table = table.forCommand,
          options = AnalyzedColumns.without(relation.options)
        )
    }

  /**
   * Pins tables to their newest version, so that all reads of the statement see the same snapshot. A cached
   * plan stays unchanged, or Spark would not find it in the cache.
   */
  private[spark] def sourceOf(df: classic.DataFrame): LogicalPlan = {
    val spark = df.sparkSession
    val source = df.queryExecution.analyzed
    val usesCache = CacheInternals.usesCache(spark, source)
    val newest = new QuerySnapshots
    def pinned(plan: LogicalPlan): LogicalPlan =
      if (usesCache && CacheInternals.cached(spark, plan).isDefined) plan
      else {
        val here = plan match {
          case relation @ ExtractV2Table(table: DeltaicTable) =>
            relation.copy(table = table.pinnedTo(newest))
          case other => other.mapChildren(pinned)
        }
        here.transformExpressions { case subquery: SubqueryExpression =>
          subquery.withNewPlan(pinned(subquery.plan))
        }
      }
    pinned(source)
  }

  private[spark] def expression(spark: SparkSession, column: Column): Option[Expression] =
    Option(column).map(SessionInternals.expression(spark, _))

  private[spark] def assignments(
      spark: SparkSession,
      columns: JList[String],
      values: JList[Column]
  ): Seq[Assignment] =
    columns.asScala.toSeq.zip(values.asScala).map { case (column, value) =>
      Assignment(named(column), SessionInternals.expression(spark, value))
    }

  /** A name is not an expression: `a-b` is parsed as the name of one column, or fails. */
  private def named(column: String): UnresolvedAttribute =
    try UnresolvedAttribute.quotedString(column)
    catch {
      case e: AnalysisException =>
        throw DeltaicException(
          "DELTAIC_INVALID_ARGUMENT",
          Map("argument" -> "set", "value" -> column, "reason" -> "it is no name of a column"),
          e
        )
    }
}

/** Collects the clauses of a MERGE in the order in which they are added, and runs it. */
final class MergeStatement private[spark] (
    target: classic.DataFrame,
    source: classic.DataFrame,
    condition: Column
) {
  private val spark = target.sparkSession
  private val matched = ArrayBuffer.empty[MergeAction]
  private val notMatched = ArrayBuffer.empty[MergeAction]
  private val notMatchedBySource = ArrayBuffer.empty[MergeAction]
  private var evolvesSchema = false

  def matchedUpdate(when: Column, columns: JList[String], values: JList[Column]): Unit =
    matched += UpdateAction(optional(when), RowLevelStatements.assignments(spark, columns, values))

  def matchedUpdateAll(when: Column): Unit = matched += UpdateStarAction(optional(when))

  def matchedDelete(when: Column): Unit = matched += DeleteAction(optional(when))

  def notMatchedInsert(when: Column, columns: JList[String], values: JList[Column]): Unit =
    notMatched += InsertAction(
      optional(when),
      RowLevelStatements.assignments(spark, columns, values)
    )

  def notMatchedInsertAll(when: Column): Unit = notMatched += InsertStarAction(optional(when))

  def notMatchedBySourceUpdate(
      when: Column,
      columns: JList[String],
      values: JList[Column]
  ): Unit =
    notMatchedBySource +=
      UpdateAction(optional(when), RowLevelStatements.assignments(spark, columns, values))

  def notMatchedBySourceDelete(when: Column): Unit =
    notMatchedBySource += DeleteAction(optional(when))

  def withSchemaEvolution(): Unit = evolvesSchema = true

  /** Runs it, unless it has been committed with this application and this or a later version. */
  def runOnce(appId: String, version: Long): DataFrame =
    StatementTransaction.within(appId, version)(run())

  def run(): DataFrame = {
    requireReachableClauses()
    val sides = new MergeSides(target, source)
    val merge = MergeIntoTable(
      sides.target,
      sides.source,
      sides.rebind(SessionInternals.expression(spark, condition)),
      matched.map(sides.rebind).toSeq,
      notMatched.map(sides.rebind).toSeq,
      notMatchedBySource.map(sides.rebind).toSeq,
      evolvesSchema
    )
    JobInternals.calledAs(spark, "DeltaTable.merge")(SessionInternals.run(spark, merge))
  }

  /** Spark requires it of statements in SQL, in its parser. */
  private def requireReachableClauses(): Unit = {
    def refuse(problem: String): Nothing =
      throw DeltaicException("DELTAIC_MERGE_CLAUSES_INVALID", Map("problem" -> problem))
    val groups = Seq(
      "WHEN MATCHED" -> matched,
      "WHEN NOT MATCHED" -> notMatched,
      "WHEN NOT MATCHED BY SOURCE" -> notMatchedBySource
    )
    if (groups.forall { case (_, clauses) => clauses.isEmpty })
      refuse("there is none")
    groups.foreach { case (group, clauses) =>
      if (clauses.dropRight(1).exists(_.condition.isEmpty))
        refuse(
          s"a $group clause has no condition, but another one follows, which no row would reach"
        )
    }
  }

  private def optional(when: Column): Option[Expression] =
    RowLevelStatements.expression(spark, when)
}
