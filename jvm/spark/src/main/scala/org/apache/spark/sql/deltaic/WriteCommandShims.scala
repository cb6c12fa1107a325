package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.analysis.TableOutputResolver.DefaultValueFillMode
import org.apache.spark.sql.catalyst.analysis.{
  ResolveRowLevelCommandAssignments,
  TableOutputResolver
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/** Steps of the analysis of writes, for those that Spark's analyser would not get right by itself. */
object WriteCommandShims {

  /** The write that an INSERT into a table of the connector API is. */
  def writeOf(spark: SparkSession, insert: InsertIntoStatement): LogicalPlan =
    spark.sessionState.analyzer.ResolveInsertInto(insert)

  /**
   * Casts and orders the rows of a resolved query for the table. Columns that they lack are null or have
   * their default, fields of structs too where columns go by name.
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
      write.withNewQuery(rows).withNewTable(table)
    }

  /**
   * A resolved MERGE whose clauses assign to each column of the target. Fields of structs go by their
   * names: an update by a star keeps those that the source lacks, elsewhere they are null. Spark has that
   * behind a setting of the session.
   */
  def aligned(merge: MergeIntoTable): LogicalPlan = {
    val settings = SQLConf.get.clone()
    settings.setConf(SQLConf.MERGE_INTO_NESTED_TYPE_COERCION_ENABLED, true)
    SQLConf.withExistingConf(settings)(ResolveRowLevelCommandAssignments(merge))
  }
}
