package io.deltaic.spark.changes

import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.schema.{FileMetadata, TableSchema}
import io.deltaic.spark.skipping.FileSelection

/** Accepts filters and columns from the optimizer for a [[ChangesScan]]. */
private[spark] final class ChangesScanBuilder(
    spark: SparkSession,
    feed: ChangeSource,
    schema: TableSchema,
    options: CaseInsensitiveStringMap,
    use: ChangesUse = ChangesUse()
) extends ScanBuilder
    with SupportsPushDownCatalystFilters
    with SupportsPushDownRequiredColumns {

  /**
   * The columns that are constant within every file. Some files store the change type, or columns
   * by which the table was not always partitioned, so these are excluded.
   */
  private val filesSchema =
    ChangeColumns.constantIn(schema.copy(partitionColumns = Nil), constantType = false)

  private var filters: Seq[Expression] = Nil
  private var requiredColumns: StructType = ChangeColumns.of(feed, schema.all)

  /**
   * Returns the filters that must still be evaluated for each row: all that cannot be fully evaluated on every
   * file.
   */
  override def pushFilters(candidates: Seq[Expression]): Seq[Expression] = {
    val (usable, unusable) = candidates.partition { filter =>
      filter.deterministic && !SubqueryExpression.hasSubquery(filter) &&
      !filter.references.exists(column => FileMetadata.isMetadata(column.name, schema))
    }
    filters = usable
    unusable ++ FileSelection.split(usable, filesSchema.skipping).remaining
  }

  override def pushedFilters: Array[Predicate] = Array.empty

  override def pruneColumns(required: StructType): Unit = requiredColumns = required

  override def build(): Scan =
    new ChangesScan(spark, feed, schema, requiredColumns, filters, options, use)
}
