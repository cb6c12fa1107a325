package io.deltaic.spark.sql.analysis.target

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable

/** Refuses changes that Spark cannot plan, for which it would report an error about its own plans. */
private[spark] object CheckUnsupportedDml extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    ChangedTarget.of(plan).foreach(requireNoView)
    plan
  }

  private def requireNoView(target: LogicalPlan): Unit =
    for {
      view <- target.collectFirst { case view: View => view }
      table <- view.collectFirst { case ExtractV2Table(table: DeltaicTable) => table.name() }
    } throw DeltaicException(
      "DELTAIC_NAME_IS_NOT_A_TABLE",
      Map("name" -> view.desc.identifier.unquotedString, "found" -> kind(view, table))
    )

  private def kind(view: View, table: String): String =
    if (!view.isTempView) s"a view of the table $table"
    else ViewOperation.refusal("a temporary view", view, table)
}
