package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{WriteToStream, WriteToStreamStatement}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.util.UnsupportedOperation

/**
 * Refuses changes that Spark cannot plan, for which it would report an error about its own plans, and streaming writes,
 * which are not supported yet.
 */
private[spark] object CheckUnsupportedDml extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    ChangedTarget.of(plan).foreach(requireNoView)
    plan match {
      case stream: WriteToStreamStatement => requireNoStream(stream.sink)
      case stream: WriteToStream => requireNoStream(stream.sink)
      case _ =>
    }
    plan
  }

  /** `df.writeStream.toTable(name)`, in the thread that starts the stream. */
  private def requireNoStream(sink: Table): Unit = sink match {
    case _: DeltaicTable => throw UnsupportedOperation.command("writeStream")
    case _ =>
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
