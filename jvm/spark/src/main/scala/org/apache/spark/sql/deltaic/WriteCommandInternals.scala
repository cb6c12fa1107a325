package org.apache.spark.sql.deltaic

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.TableOutputResolver.DefaultValueFillMode
import org.apache.spark.sql.catalyst.analysis.{
  ResolveInsertionBase,
  ResolveRowLevelCommandAssignments,
  ResolveTimeZone,
  TableOutputResolver
}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  Cast,
  Expression,
  NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}
import org.apache.spark.sql.util.SchemaUtils

/** Analysis steps for writes that Spark's analyzer would not resolve correctly by itself. */
object WriteCommandInternals {

  /**
   * Converts an INSERT with a column list to one by name. Fields are matched by position, so they get the names of
   * the columns' fields.
   */
  def named(insert: InsertIntoStatement, table: String): InsertIntoStatement =
    if (insert.userSpecifiedCols.isEmpty) insert
    else {
      val rows = withFieldsNamed(NamedRows.of(insert, table), insert.table.output)
      insert.copy(query = rows, userSpecifiedCols = Nil, byName = true)
    }

  /**
   * Rows whose fields, within arrays and maps too, get the names of the fields at the same positions in the
   * columns.
   */
  private def withFieldsNamed(rows: LogicalPlan, columns: Seq[Attribute]): LogicalPlan = {
    val changed = rows.output.map { value =>
      val wanted = columns.find(_.name.equalsIgnoreCase(value.name))
        .fold(value.dataType)(column => renamed(value.dataType, column.dataType))
      if (wanted == value.dataType) value
      else Alias(Cast(value, wanted), value.name)(explicitMetadata = Some(value.metadata))
    }
    if (changed == rows.output) rows else Project(changed, rows)
  }

  private def renamed(from: DataType, to: DataType): DataType = (from, to) match {
    case (struct: StructType, column: StructType) =>
      val fields = struct.fields.zipWithIndex.map { case (field, place) =>
        column.fields.lift(place).fold(field) { wanted =>
          field.copy(name = wanted.name, dataType = renamed(field.dataType, wanted.dataType))
        }
      }
      val names = fields.map(_.name.toLowerCase(Locale.ROOT))
      if (names.distinct.length == names.length) StructType(fields) else from
    case (ArrayType(element, containsNull), ArrayType(wanted, _)) =>
      ArrayType(renamedWithin(element, wanted), containsNull)
    case (MapType(key, value, containsNull), MapType(wantedKey, wantedValue, _)) =>
      MapType(renamedWithin(key, wantedKey), renamedWithin(value, wantedValue), containsNull)
    case _ => from
  }

  /** As in delta-spark, structs with the same field names and types as the column keep them. */
  private def renamedWithin(from: DataType, to: DataType): DataType = (from, to) match {
    case (struct: StructType, column: StructType) if haveSameFields(struct, column) => from
    case _ => renamed(from, to)
  }

  private def haveSameFields(struct: StructType, column: StructType): Boolean =
    struct.length == column.length && struct.forall { field =>
      column.exists { own =>
        own.name.equalsIgnoreCase(field.name) &&
        DataType.equalsIgnoreCompatibleNullability(field.dataType, own.dataType)
      }
    }

  /** The write command of an INSERT into a table of the connector API. */
  def writeOf(spark: SparkSession, insert: InsertIntoStatement): LogicalPlan =
    // Partition values specified in the statement are cast.
    ResolveTimeZone(spark.sessionState.analyzer.ResolveInsertInto(insert))

  /**
   * Casts and orders the rows of a resolved query for the table. Missing columns are null or have
   * their default, as are missing fields of structs if `mayLackFields`. Names that differ only in
   * case are the same, regardless of the session, because a table never has both. Under the policy
   * LEGACY, which Spark rejects, values have already been cast, or follow ANSI.
   *
   * In the result, CHAR columns of the table are plain strings. The condition on replaced rows
   * still references the CHAR columns, because Spark pads the values they are compared with.
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

  /** A value with the fields of structs in the order of the column. */
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
   * the columns already, so the session's store assignment policy does not apply, and none is rejected.
   *
   * Fields of structs are matched by name. If a MERGE may add columns, `UPDATE SET *` keeps the
   * fields that the source lacks, otherwise they become null: in Spark a session setting controls
   * this.
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

    /** Spark does not accept names of columns that the write may add. */
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

  /** The session's settings, changed so that a value of its column's type can be assigned. */
  private def byTypes: SQLConf = {
    val settings = SQLConf.get.clone()
    settings.setConf(SQLConf.STORE_ASSIGNMENT_POLICY, StoreAssignmentPolicy.ANSI)
    settings
  }
}
