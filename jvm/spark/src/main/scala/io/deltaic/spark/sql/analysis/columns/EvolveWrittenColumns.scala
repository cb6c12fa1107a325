package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.WriteCommandInternals
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.definition.ColumnDefinitions
import io.deltaic.spark.catalog.target.{AutomaticWidening, Evolution, RowsToWrite, WrittenColumns}
import io.deltaic.spark.sql.analysis.ReplaceMatchingRows
import io.deltaic.spark.write.WriteTargets

/**
 * Evolves the columns of a written table in the plan, if the write may add columns. They are committed
 * with the rows. Spark's own schema evolution would alter the table while it analyzes a statement, even for
 * EXPLAIN.
 *
 * {{{
 *   AppendData t [a]              =>     AppendData (t with [a, b]) [a, b]
 *   +- query [a, b]                      +- Project [cast(a), b]
 *                                           +- query [a, b]
 * }}}
 *
 * Each write gets a table here for which Spark resolves the output columns, even if nothing is added: Spark does not
 * resolve a write to a [[DeltaicTable]], also in the pass that resolves the table.
 *
 * Rows with columns that a write may not add are refused.
 */
private[spark] final case class EvolveWrittenColumns(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case insert: InsertIntoStatement if insert.query.resolved =>
      insert.table match {
        case relation @ ExtractV2Table(table: DeltaicTable) if !table.isTarget =>
          evolved(WriteCommandInternals.named(insert, relation.name), relation, table)
        case _ => insert
      }
    case write: V2WriteCommand if write.table.resolved && write.query.resolved =>
      write.table match {
        case relation @ ExtractV2Table(table: DeltaicTable) if !table.isTarget =>
          evolved(ReplaceWhereOption.applied(spark, write, table), relation, table)
        case _ => write
      }
  }

  private def evolved(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): LogicalPlan = {
    val rows = rowsOf(insert, relation)
    val options = optionOf(relation, Map.empty)
    val values = valuesOf(table, rows, insert.withSchemaEvolution, options)
    columnsAfter(table, rows, insert.withSchemaEvolution, options) match {
      // Under LEGACY, Spark refuses any INSERT into a V2 table, so it gets a resolved one.
      case None if conf.storeAssignmentPolicy != StoreAssignmentPolicy.LEGACY =>
        insert.copy(
          table = asTarget(relation, table),
          query = values.fitted(insert.query, relation.output)
        )
      case columns =>
        val after = columns.fold(asTarget(relation, table))(evolvedTo(relation, table, _))
        val fitted = insert.copy(query = values.fitted(insert.query, after.output))
        WriteCommandInternals.writeOf(spark, staged(fitted, after, table)) match {
          case write: V2WriteCommand =>
            val mayLackFields = columns.isDefined && write.isByName
            WriteCommandInternals.withResolvedOutput(spark, write, mayLackFields)
          case other => other
        }
    }
  }

  private def staged(
      insert: InsertIntoStatement,
      after: DataSourceV2Relation,
      table: DeltaicTable
  ): InsertIntoStatement = after match {
    case ExtractV2Table(target: WriteTargets) if ReplaceMatchingRows.isOn(insert) =>
      ReplaceMatchingRows(spark).planned(insert, after, table, target)
    case _ => insert.copy(table = after)
  }

  private def evolved(
      write: V2WriteCommand,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): LogicalPlan = {
    val rows = RowsToWrite(columnsOf(write.query), write.isByName)
    val options = write match {
      case append: AppendData => append.writeOptions
      case overwrite: OverwriteByExpression => overwrite.writeOptions
      case overwrite: OverwritePartitionsDynamic => overwrite.writeOptions
      case _ => Map.empty[String, String]
    }
    val option = optionOf(relation, options)
    val values = valuesOf(table, rows, write.withSchemaEvolution, option)
    val columns = columnsAfter(table, rows, write.withSchemaEvolution, option)
    val target = columns.fold(asTarget(relation, table))(evolvedTo(relation, table, _))
    val fitted =
      write.withNewQuery(values.fitted(write.query, target.output)).withNewTable(target)
    val staged = fitted match {
      case overwrite: OverwriteByExpression if !overwrite.isByName =>
        ReplaceMatchingRows(spark)
          .planned(overwrite, write.query, table)
          .getOrElse(onEvolved(overwrite, relation, target))
      case overwrite: OverwriteByExpression => onEvolved(overwrite, relation, target)
      case other => other
    }
    val mayLackFields = write.isByName && (columns.isDefined || !isStatement(write))
    WriteCommandInternals.withResolvedOutput(spark, staged, mayLackFields)
  }

  /** Whether a write is an SQL statement: `INSERT ... BY NAME REPLACE WHERE` must have all fields, as each INSERT. */
  private def isStatement(write: V2WriteCommand): Boolean = write.origin.startIndex.isDefined

  /** Replaces columns in the condition of an overwrite by the evolved ones, which may have new fields. */
  private def onEvolved(
      overwrite: OverwriteByExpression,
      before: DataSourceV2Relation,
      target: DataSourceV2Relation
  ): V2WriteCommand = {
    val evolved = AttributeMap(before.output.zip(target.output))
    overwrite.copy(deleteExpr = overwrite.deleteExpr.transform {
      case column: Attribute if column.resolved => evolved.getOrElse(column, column)
    })
  }

  private def columnsAfter(
      table: DeltaicTable,
      rows: RowsToWrite,
      evolves: Boolean,
      option: String => Option[String]
  ): Option[StructType] = WrittenColumns.evolved(table, rows, evolutionOf(evolves, option))

  private def valuesOf(
      table: DeltaicTable,
      rows: RowsToWrite,
      evolves: Boolean,
      option: String => Option[String]
  ): InsertedValues = {
    val exactly =
      evolutionOf(evolves, option) != Evolution.Off && AutomaticWidening.refusesCuts(table)
    new InsertedValues(table.log.table.toString, conf, rows, exactly)
  }

  private def evolutionOf(evolves: Boolean, option: String => Option[String]): Evolution =
    if (evolves) Evolution.IfPossible else Evolution.ofCatalogTable(spark, option)

  private def optionOf(
      relation: DataSourceV2Relation,
      options: Map[String, String]
  ): String => Option[String] = {
    val ofWrite = CaseInsensitiveMap(options)
    name => ofWrite.get(name).orElse(Option(relation.options.get(name)))
  }

  private def rowsOf(insert: InsertIntoStatement, relation: DataSourceV2Relation): RowsToWrite = {
    val staticColumns = insert.partitionSpec.collect { case (name, Some(_)) => name }.toSeq
    RowsToWrite(
      columnsOf(insert.query),
      insert.byName,
      relation.output.map(_.name).filter(name =>
        staticColumns.exists(_.equalsIgnoreCase(name))
      ).toSet
    )
  }

  private def columnsOf(query: LogicalPlan): StructType = ColumnDefinitions.ofRows(query.schema)

  private def asTarget(relation: DataSourceV2Relation, table: DeltaicTable): DataSourceV2Relation =
    relation.copy(table = table.asTarget)

  /** Existing columns keep their attributes in the plan; new ones follow them. */
  private def evolvedTo(
      relation: DataSourceV2Relation,
      table: DeltaicTable,
      columns: StructType
  ): DataSourceV2Relation = {
    val writing = table.writeTarget
    val evolved = writing.intent.copy(evolved = Some(columns))
    EvolvedRelation(relation, table.forWriting(writing.copy(intent = evolved)))
  }
}
