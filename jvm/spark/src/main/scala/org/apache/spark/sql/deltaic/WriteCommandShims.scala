package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.analysis.TableOutputResolver.DefaultValueFillMode
import org.apache.spark.sql.catalyst.analysis.{
  ResolveRowLevelCommandAssignments,
  TableOutputResolver
}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.DataType

/** Steps of the analysis of writes, for those that Spark's analyser would not get right by itself. */
object WriteCommandShims {

  /** The write that an INSERT into a table of the connector API is. */
  def writeOf(spark: SparkSession, insert: InsertIntoStatement): LogicalPlan =
    spark.sessionState.analyzer.ResolveInsertInto(insert)

  /**
   * Casts and orders the rows of a resolved query for the table. Columns that they lack are null or have
   * their default, fields of structs too where columns go by name.
   *
   * The table's columns are plain texts then where they were CHAR. What the write replaces is said of them
   * as they were: Spark pads what they are compared with.
   */
  def withResolvedOutput(spark: SparkSession, write: V2WriteCommand): V2WriteCommand =
    if (write.outputResolved) write
    else {
      val rows = TableOutputResolver.resolveOutputColumns(
        write.table.name,
        write.table.output,
        write.query,
        write.isByName,
        spark.sessionState.conf,
        if (write.isByName) DefaultValueFillMode.RECURSE else DefaultValueFillMode.FILL
      )
      val table = write.table match {
        case relation: DataSourceV2Relation =>
          relation.copy(output = relation.output.map(CharVarcharUtils.cleanAttrMetadata))
        case other => other
      }
      val ending = write match {
        case overwrite: OverwriteByExpression =>
          val condition = spark.sessionState.analyzer
            .resolveExpressionByPlanOutput(overwrite.deleteExpr, overwrite.table)
          overwrite.copy(deleteExpr = condition)
        case other => other
      }
      ending.withNewQuery(rows).withNewTable(table)
    }

  /** A value with the fields of structs in the places that they have in the column. */
  def shaped(column: Attribute, value: Expression, mayLackFields: Boolean): Expression =
    if (DataType.equalsIgnoreCompatibleNullability(value.dataType, column.dataType)) value
    else
      TableOutputResolver.resolveUpdate(
        "",
        value,
        column,
        byTypes,
        problem => throw new IllegalArgumentException(problem),
        Seq(column.name),
        if (mayLackFields) DefaultValueFillMode.RECURSE else DefaultValueFillMode.NONE
      )

  /**
   * A resolved UPDATE or MERGE that assigns to each column of its table. The values have the types of
   * the columns already, so that no policy of the session matters, nor is one refused.
   *
   * Fields of structs go by their names. Where a MERGE may add columns, an update by a star keeps those
   * that the source lacks, elsewhere they are null: Spark has that behind a setting of the session.
   */
  def aligned(command: LogicalPlan): LogicalPlan = {
    val settings = byTypes
    command match {
      case merge: MergeIntoTable if merge.withSchemaEvolution =>
        settings.setConf(SQLConf.MERGE_INTO_NESTED_TYPE_COERCION_ENABLED, true)
      case _ =>
    }
    SQLConf.withExistingConf(settings)(ResolveRowLevelCommandAssignments(command))
  }

  /** The session's settings, by which a value that has its column's type can be assigned. */
  private def byTypes: SQLConf = {
    val settings = SQLConf.get.clone()
    settings.setConf(SQLConf.STORE_ASSIGNMENT_POLICY, StoreAssignmentPolicy.ANSI)
    settings
  }
}
