package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.SupportsV1OverwriteWithSaveAsTable
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.execution.datasources.DataSourceUtils

import io.deltaic.spark.catalog.target.{KeptClustering, PathWrite, SaveStatement}
import io.deltaic.spark.catalog.{DeltaTableCatalog, ExistingTable, TableLocation}

/**
 * Plans `df.write.mode("overwrite").saveAsTable(name)` for an existing table as an overwrite
 * of its rows, which retains constraints, properties and columns unless `overwriteSchema` is set.
 * Spark plans it as CREATE OR REPLACE, and marks it only by an option.
 *
 * The table is loaded from the catalog here, as Spark does for the table of an INSERT.
 */
private[spark] final case class RewriteSaveAsTable(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case replace @ ReplaceTableAsSelect(
          ResolvedIdentifier(catalog: DeltaTableCatalog, identifier),
          partitioning,
          query,
          _,
          options,
          true,
          _
        ) if isSave(options) && query.resolved =>
      val saved = for {
        table <- catalog.existing(identifier) if isAt(table, options)
        columns <- partitionBy(table, partitioning)
      } yield save(table, columns, query, options)
      saved.getOrElse(replace)
  }

  private def isSave(options: Map[String, String]): Boolean =
    CaseInsensitiveMap(options).contains(SupportsV1OverwriteWithSaveAsTable.OPTION_NAME)

  private def isAt(table: ExistingTable, options: Map[String, String]): Boolean =
    CaseInsensitiveMap(options).get("path")
      .forall(path => TableLocation.log(spark, path).table == table.log.table)

  /** None for transforms that a Deltaic table cannot have; the creation of the table refuses them. */
  private def partitionBy(
      table: ExistingTable,
      partitioning: Seq[Transform]
  ): Option[Seq[String]] = {
    val (clustering, others) =
      partitioning.partition(SchemaInternals.clusteringColumns(_).isDefined)
    clustering.flatMap(SchemaInternals.clusteringColumns(_)).foreach(KeptClustering.require(
      table.log.latest(),
      _
    ))
    val columns = others.map(SchemaInternals.identityColumn)
    Option.when(columns.forall(_.isDefined))(columns.flatten)
  }

  private def save(
      table: ExistingTable,
      partitionBy: Seq[String],
      query: LogicalPlan,
      options: Map[String, String]
  ): LogicalPlan = {
    val partitioned = Option.when(partitionBy.nonEmpty)(
      DataSourceUtils.PARTITIONING_COLUMNS_KEY ->
        DataSourceUtils.encodePartitioningColumns(partitionBy)
    )
    new PathWrite(
      spark,
      table.log,
      Some(table.log.latest()),
      SaveMode.Overwrite,
      options ++ partitioned,
      query,
      SaveStatement.ToTable(table.isManaged)
    ).plan
  }
}
