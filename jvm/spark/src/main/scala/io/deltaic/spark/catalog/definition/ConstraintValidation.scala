package io.deltaic.spark.catalog.definition

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, Literal, Not}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Limit, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.{DeltaicTable, TableVersion}
import io.deltaic.spark.schema.{ConditionResolver, TableSchema}

/** Checks whether a condition can be a constraint of a table, and whether its rows satisfy it. */
private[spark] object ConstraintValidation {

  /**
   * A row of the version that violates the condition, as a string; none if all rows satisfy it.
   *
   * @throws DeltaicThrowable if it is not a condition on single rows of the table
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
    val table = new DeltaicTable(spark, TableVersion.timeTravel(log, snapshot))
    val relation = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
    val parsed = spark.sessionState.sqlParser.parseExpression(condition)
    val violating: LogicalPlan = Filter(Not(EqualNullSafe(parsed, TrueLiteral)), relation)
    val phase = JobInternals.name("ADD CONSTRAINT", "find a violating row", log.table.toString)
    JobInternals.described(spark, phase) {
      SessionInternals.run(spark, Limit(Literal(1), violating)).collect().headOption.map(shown)
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
