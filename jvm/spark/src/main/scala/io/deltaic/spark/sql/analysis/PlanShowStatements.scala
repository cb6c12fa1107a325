package io.deltaic.spark.sql.analysis

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedPartitionSpec}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.{Column, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.{DeltaicTable, TableLocation}
import io.deltaic.spark.util.TableWithSchema

/**
 * Plans `SHOW CREATE TABLE` and `SHOW PARTITIONS` for Deltaic tables, and leaves metadata columns out of
 * `DESCRIBE EXTENDED`.
 *
 * Spark's own `SHOW CREATE TABLE` leaves out generated columns, clustering and constraints, and has the
 * collation of every string, with which the statement cannot be run again. For `SHOW PARTITIONS` it requires a
 * catalog with partition management; here the result is the distinct values of the partition columns, as in
 * delta-spark.
 *
 * {{{
 *   ShowCreateTable                =>   LocalRelation [createtab_stmt]
 *   +- ResolvedTable t
 *
 *   ShowPartitions (p = 'a')       =>   Sort [p, q]
 *   +- ResolvedTable t                  +- Aggregate [p, q]
 *                                          +- Filter (p <=> cast('a'))
 *                                             +- DataSourceV2Relation t
 * }}}
 */
private[spark] object PlanShowStatements extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case ShowCreateTable(
          found @ ResolvedTable(_, identifier, table: DeltaicTable, _),
          false,
          output
        ) =>
      val isPath = TableLocation.pathOf(identifier).isDefined
      val statement = table.createStatement(found.name, isPath).sql
      LocalRelation(output, Seq(InternalRow(UTF8String.fromString(statement))))
    case show @ ShowPartitions(ResolvedTable(catalog, identifier, table: DeltaicTable, _), _, _) =>
      val relation = DataSourceV2Relation.create(
        table,
        Some(catalog),
        Some(identifier),
        CaseInsensitiveStringMap.empty()
      )
      partitions(table, relation, show.pattern.collect { case UnresolvedPartitionSpec(s, _) => s })
    case describe @ DescribeRelation(
          found @ ResolvedTable(_, _, table: DeltaicTable, _),
          true,
          _
        ) =>
      describe.copy(relation = found.copy(table = new DescribedTable(table)))
  }

  private def partitions(
      table: DeltaicTable,
      relation: DataSourceV2Relation,
      wanted: Option[Map[String, String]]
  ): LogicalPlan = {
    val names = table.tableSchema.partitionColumns
    if (names.isEmpty)
      throw DeltaicException("DELTAIC_NOT_PARTITIONED", Map("table" -> table.name()))
    val columns = names.map(name => relation.output.find(_.name == name).get)
    val conditions = wanted.getOrElse(Map.empty).map { case (name, value) =>
      val column = columns.find(c => conf.resolver(c.name, name)).getOrElse {
        throw DeltaicException(
          "DELTAIC_NOT_A_PARTITION_COLUMN",
          Map("table" -> table.name(), "column" -> name, "columns" -> names.mkString(", "))
        )
      }
      val typed = Cast(Literal(value), column.dataType, Some(conf.sessionLocalTimeZone))
      EqualNullSafe(column, typed): Expression
    }
    val rows = conditions.reduceOption(And(_, _)).fold[LogicalPlan](relation)(Filter(_, relation))
    val found = Aggregate(columns, columns, rows)
    Sort(columns.map(SortOrder(_, Ascending)), global = true, found)
  }
}

/**
 * A table for `DESCRIBE EXTENDED`: without metadata columns, since Spark would also list those that only our
 * own plans use.
 */
private final class DescribedTable(table: DeltaicTable)
    extends TableWithSchema
    with SupportsRead {
  override def name(): String = table.name()
  override def columns(): Array[Column] = table.columns()
  override def partitioning(): Array[Transform] = table.partitioning()
  override def properties(): JMap[String, String] = table.properties()
  override def capabilities(): JSet[TableCapability] = table.capabilities()
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    table.newScanBuilder(options)
}
