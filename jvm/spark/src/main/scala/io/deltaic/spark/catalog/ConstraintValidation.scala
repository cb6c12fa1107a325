package io.deltaic.spark.catalog

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, Literal, Not}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Limit, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.TableSchema
import io.deltaic.spark.write.ConditionResolver

/** Whether a condition can be a constraint of a table, and whether its rows meet it. */
private[spark] object ConstraintValidation {

  /**
   * A row of the version that does not meet the condition, as a text; none if all do.
   *
   * @throws DeltaicThrowable if it is no condition on single rows of the table
   */
  def firstViolation(
      spark: SparkSession,
      log: DeltaLog,
      version: Long,
      name: String,
      condition: String
  ): Option[String] = {
    val snapshot = log.at(version)
    val columns = TableSchema.of(snapshot).all
    new ConditionResolver(spark, log.table.toString, columns)
      .checkNew(s"CHECK constraint $name", condition)
    val table = new DeltaicTable(spark, log, snapshot, TableOrigin.TimeTravel)
    val relation = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
    val parsed = spark.sessionState.sqlParser.parseExpression(condition)
    val broken: LogicalPlan = Filter(Not(EqualNullSafe(parsed, TrueLiteral)), relation)
    val phase = JobShims.name("ADD CONSTRAINT", "look for rows that break it", log.table.toString)
    JobShims.described(spark, phase) {
      SessionShims.run(spark, Limit(Literal(1), broken)).collect().headOption.map(shown)
    }
  }

  private def shown(row: Row): String =
    row.schema.fieldNames.zip(row.toSeq)
      .map {
        case (name, bytes: Array[Byte]) =>
          s"$name = X'${bytes.map(byte => f"$byte%02X").mkString}'"
        case (name, value) => s"$name = $value"
      }
      .mkString(", ").take(1000)
}
