package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SubqueryExpression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.skipping.FileSelection

/**
 * Takes filters and columns from the optimizer. Nothing here looks at files: until the plan is
 * final, Spark may still exchange the table for a newer one.
 *
 * @param onBuild told of each scan built, so that a row-level operation knows what it read
 */
private[spark] final class TableScanBuilder(
    spark: SparkSession,
    files: FileSource,
    schema: TableSchema,
    options: CaseInsensitiveStringMap,
    onBuild: TableScan => Unit = _ => ()
) extends ScanBuilder
    with SupportsPushDownCatalystFilters
    with SupportsPushDownRequiredColumns {

  private var filters: Seq[Expression] = Nil
  private var fileFilters: Seq[Expression] = Nil
  private var requiredColumns: StructType = schema.all

  /**
   * Keeps every filter that can help to choose files or row groups, and returns those that must
   * still be evaluated for each row: all but the ones that partition values decide.
   */
  override def pushFilters(candidates: Seq[Expression]): Seq[Expression] = {
    val (usable, unusable) = candidates.partition(isUsable)
    filters = usable
    fileFilters = unusable.filter(FileMetadata.decidesFiles(_, schema))
    unusable ++ FileSelection.split(usable, schema.skipping).remaining
  }

  override def pushedFilters: Array[Predicate] = Array.empty

  override def pruneColumns(required: StructType): Unit = requiredColumns = required

  override def build(): Scan = {
    val scan = new TableScan(spark, files, schema, requiredColumns, filters, fileFilters, options)
    onBuild(scan)
    scan
  }

  private def isUsable(filter: Expression): Boolean =
    filter.deterministic && !SubqueryExpression.hasSubquery(filter) &&
    !filter.references.exists(isHidden)

  private def isHidden(attribute: Attribute): Boolean =
    ScanColumns.rowId.contains(attribute.name) || FileMetadata.isMetadata(attribute.name, schema)
}
