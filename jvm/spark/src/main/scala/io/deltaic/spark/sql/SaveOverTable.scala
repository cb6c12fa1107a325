package io.deltaic.spark.sql

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.SupportsV1OverwriteWithSaveAsTable
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.execution.datasources.DataSourceUtils

import io.deltaic.spark.DeltaicCatalog
import io.deltaic.spark.catalog.{ExistingTable, KeptClustering, Save, SaveStatement, TableLocation}

/**
 * Makes `df.write.mode("overwrite").saveAsTable(name)` what it says where the table exists: an overwrite
 * of its rows, which leaves constraints, properties and columns alone unless `overwriteSchema` is set.
 * To Spark it is a CREATE OR REPLACE, and tells it from the other only by an option that it sets.
 *
 * As where Spark resolves the table of an INSERT, the catalog is asked for it here.
 */
private[spark] final case class SaveOverTable(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case replace @ ReplaceTableAsSelect(
          ResolvedIdentifier(catalog: DeltaicCatalog, identifier),
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

  /** None for what a table of ours cannot have, which is refused where tables are created. */
  private def partitionBy(
      table: ExistingTable,
      partitioning: Seq[Transform]
  ): Option[Seq[String]] = {
    val (clustering, others) =
      partitioning.partition(SchemaShims.clusteringColumns(_).isDefined)
    clustering.flatMap(SchemaShims.clusteringColumns(_)).foreach(KeptClustering.require(
      table.log.latest(),
      _
    ))
    val columns = others.map(SchemaShims.identityColumn)
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
    new Save(
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
