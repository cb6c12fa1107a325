package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.analysis.TableOutputResolver.DefaultValueFillMode
import org.apache.spark.sql.catalyst.analysis.{
  ResolveInsertionBase,
  ResolveRowLevelCommandAssignments,
  ResolveTimeZone,
  TableOutputResolver
}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.util.SchemaUtils

/** Steps of the analysis of writes, for those that Spark's analyser would not get right by itself. */
object WriteCommandShims {

  /** An INSERT with a list of columns as one by name. Fields of structs go by place, so they get the columns' names. */
  def named(insert: InsertIntoStatement, table: String): InsertIntoStatement =
    if (insert.userSpecifiedCols.isEmpty) insert
    else
      insert.copy(query = NamedRows.of(insert, table), userSpecifiedCols = Nil, byName = true)

  /** The write that an INSERT into a table of the connector API is. */
  def writeOf(spark: SparkSession, insert: InsertIntoStatement): LogicalPlan =
    // Values of partitions that the statement states are cast.
    ResolveTimeZone(spark.sessionState.analyzer.ResolveInsertInto(insert))

  /**
   * Casts and orders the rows of a resolved query for the table. Columns that they lack are null or have
   * their default, fields of structs too where `mayLackFields`. Names that differ in case alone are the
   * same, whatever the session says, for a table never has both. Where it says LEGACY, which Spark refuses,
   * values have been cast, or go by ANSI.
   *
   * The table's columns are plain texts then where they were CHAR. What the write replaces is said of them
   * as they were: Spark pads what they are compared with.
   */
  def withResolvedOutput(
      spark: SparkSession,
      write: V2WriteCommand,
      mayLackFields: Boolean
  ): V2WriteCommand =
    if (write.outputResolved) write
    else {
      val rows = TableOutputResolver.resolveOutputColumns(
        write.table.name,
        write.table.output,
        write.query,
        write.isByName,
        storing(spark.sessionState.conf),
        if (mayLackFields) DefaultValueFillMode.RECURSE else DefaultValueFillMode.FILL
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

  private object NamedRows extends ResolveInsertionBase {
    override def apply(plan: LogicalPlan): LogicalPlan = plan

    /** Spark takes no names of columns that the write may add. */
    def of(insert: InsertIntoStatement, table: String): LogicalPlan = {
      val listed = insert.userSpecifiedCols
      val (there, added) = listed.zip(insert.query.output).partition { case (name, _) =>
        insert.table.output.exists(column => resolver(column.name, name))
      }
      if (added.isEmpty || listed.length != insert.query.output.length)
        createProjectForByNameQuery(table, insert)
      else {
        SchemaUtils.checkColumnNameDuplication(listed, resolver)
        val (names, columns) = there.unzip
        val known = insert.copy(userSpecifiedCols = names, query = Project(columns, insert.query))
        val named = createProjectForByNameQuery(table, known).expressions
          .collect { case expression: NamedExpression => expression }
        val inserted = added.map { case (name, column) => Alias(column, name)() }
        Project(named ++ inserted, insert.query)
      }
    }
  }

  private def storing(settings: SQLConf): SQLConf = {
    val isLegacy = settings.storeAssignmentPolicy == StoreAssignmentPolicy.LEGACY
    if (!settings.caseSensitiveAnalysis && !isLegacy) settings
    else {
      val changed = settings.clone()
      changed.setConf(SQLConf.CASE_SENSITIVE, false)
      if (isLegacy) changed.setConf(SQLConf.STORE_ASSIGNMENT_POLICY, StoreAssignmentPolicy.ANSI)
      changed
    }
  }

  /** The session's settings, by which a value that has its column's type can be assigned. */
  private def byTypes: SQLConf = {
    val settings = SQLConf.get.clone()
    settings.setConf(SQLConf.STORE_ASSIGNMENT_POLICY, StoreAssignmentPolicy.ANSI)
    settings
  }
}
