package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.catalyst.plans.logical.{CreateTableLike, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.deltaic.{SchemaInternals, SessionInternals}
import org.apache.spark.sql.execution.command.CreateTableLikeCommand

import io.deltaic.spark.catalog.{DeltaTableCatalog, TableLocation}

/**
 * Redirects `CREATE TABLE t LIKE s USING delta` to our catalog if `s` is a view or a table of another
 * provider: Spark would register a table without a log in the session catalog.
 */
private[spark] final case class PlanTableLike(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case like: CreateTableLikeCommand =>
      val target = Identifier.of(like.targetTable.database.toArray, like.targetTable.table)
      SessionInternals.sessionCatalog(spark) match {
        case catalog: DeltaTableCatalog
            if like.provider.exists(TableLocation.isDeltaic(_)) ||
            TableLocation.pathOf(target).isDefined =>
          CreateTableLike(
            ResolvedIdentifier(catalog, target),
            SchemaInternals.sourceOfLike(spark, catalog, like.sourceTable),
            like.fileFormat.locationUri.map(CatalogUtils.URIToString),
            Some(TableLocation.provider),
            None,
            like.properties,
            like.ifNotExists
          )
        case _ => like
      }
  }
}
