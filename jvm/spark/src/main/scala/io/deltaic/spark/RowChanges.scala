package io.deltaic.spark

import java.util.{List => JList}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{CacheShims, JobShims, PaddingShims, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, classic}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.scan.{AnalysedColumns, NewestSnapshots}

/**
 * DELETE, UPDATE and MERGE as `DeltaTable` asks for them: the plans that Spark makes of the same
 * statements in SQL. Python calls it, as it calls [[PythonApi]].
 *
 * The methods return what the statements do: how many rows they changed.
 */
object RowChanges {

  /** Deletes the rows for which `condition` is true, all rows when it is null. */
  def delete(target: classic.DataFrame, condition: Column): DataFrame = {
    val spark = target.sparkSession
    val matching = expression(spark, condition).getOrElse(Literal.TrueLiteral)
    JobShims.calledAs(spark, "DeltaTable.delete") {
      SessionShims.run(spark, DeleteFromTable(targetOf(target), matching))
    }
  }

  /**
   * Sets columns of the rows for which `condition` is true, of all rows when it is null.
   *
   * @param columns their names, as SQL spells them: of fields in them, too
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
    JobShims.calledAs(spark, "DeltaTable.update") {
      SessionShims.run(spark, UpdateTable(targetOf(target), set, expression(spark, condition)))
    }
  }

  /** A MERGE whose clauses are yet to come. */
  def merge(
      target: classic.DataFrame,
      source: classic.DataFrame,
      condition: Column
  ): MergeStatement =
    new MergeStatement(target, source, condition)

  /**
   * The rows of a table's frame with the columns of an earlier one, which then are columns of both; null if the table
   * is another since, or defined otherwise.
   */
  def withColumnsOf(earlier: classic.DataFrame, rows: classic.DataFrame): DataFrame = {
    val before = earlier.queryExecution.analyzed
    val renewed = for {
      (relation, table) <- relationIn(rows.queryExecution.analyzed)
      (old, oldTable) <- relationIn(before)
      if oldTable.hasSameColumns(table)
    } yield before.transform { case same if same eq old => relation.copy(output = old.output) }
    renewed.map(SessionShims.run(rows.sparkSession, _)).orNull
  }

  private def relationIn(plan: LogicalPlan): Option[(DataSourceV2Relation, DeltaicTable)] =
    plan.collectFirst { case relation @ ExtractV2Table(table: DeltaicTable) => (relation, table) }

  /**
   * Spark plans a MERGE that only inserts as an append, which a table from a path does not take. In a frame
   * it has texts of fixed length padded above the table, which a statement has below its conditions.
   */
  private[spark] def targetOf(frame: classic.DataFrame): LogicalPlan =
    PaddingShims.withoutPadding(frame.queryExecution.analyzed).transform {
      case relation @ ExtractV2Table(table: DeltaicTable) =>
        relation.copy(
          table = table.forCommand,
          options = AnalysedColumns.without(relation.options)
        )
    }

  /**
   * Tables at the version that is now the newest, for all of the statement's reads to agree. What is
   * cached stays as it is, or Spark would not find it.
   */
  private[spark] def sourceOf(frame: classic.DataFrame): LogicalPlan = {
    val spark = frame.sparkSession
    val source = frame.queryExecution.analyzed
    val usesCache = CacheShims.usesCache(spark, source)
    val newest = new NewestSnapshots
    def pinned(plan: LogicalPlan): LogicalPlan =
      if (usesCache && CacheShims.cached(spark, plan).isDefined) plan
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
    Option(column).map(SessionShims.expression(spark, _))

  private[spark] def assignments(
      spark: SparkSession,
      columns: JList[String],
      values: JList[Column]
  ): Seq[Assignment] =
    columns.asScala.toSeq.zip(values.asScala).map { case (column, value) =>
      Assignment(named(column), SessionShims.expression(spark, value))
    }

  /** A name is no expression: `a-b` is one column, or none. */
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

/** The clauses of a MERGE, in the order in which they are added, until it runs. */
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
    matched += UpdateAction(optional(when), RowChanges.assignments(spark, columns, values))

  def matchedUpdateAll(when: Column): Unit = matched += UpdateStarAction(optional(when))

  def matchedDelete(when: Column): Unit = matched += DeleteAction(optional(when))

  def notMatchedInsert(when: Column, columns: JList[String], values: JList[Column]): Unit =
    notMatched += InsertAction(optional(when), RowChanges.assignments(spark, columns, values))

  def notMatchedInsertAll(when: Column): Unit = notMatched += InsertStarAction(optional(when))

  def notMatchedBySourceUpdate(
      when: Column,
      columns: JList[String],
      values: JList[Column]
  ): Unit =
    notMatchedBySource +=
      UpdateAction(optional(when), RowChanges.assignments(spark, columns, values))

  def notMatchedBySourceDelete(when: Column): Unit =
    notMatchedBySource += DeleteAction(optional(when))

  def withSchemaEvolution(): Unit = evolvesSchema = true

  def run(): DataFrame = {
    val sides = new MergeSides(target, source)
    val merge = MergeIntoTable(
      sides.target,
      sides.source,
      sides.meant(SessionShims.expression(spark, condition)),
      matched.map(sides.meant).toSeq,
      notMatched.map(sides.meant).toSeq,
      notMatchedBySource.map(sides.meant).toSeq,
      evolvesSchema
    )
    JobShims.calledAs(spark, "DeltaTable.merge")(SessionShims.run(spark, merge))
  }

  private def optional(when: Column): Option[Expression] = RowChanges.expression(spark, when)
}
