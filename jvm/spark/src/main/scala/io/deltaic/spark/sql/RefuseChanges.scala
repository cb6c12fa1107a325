package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{WriteToStream, WriteToStreamStatement}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.UnsupportedOperation
import io.deltaic.spark.catalog.DeltaicTable

/**
 * Refuses changes that Spark cannot plan, and would answer with an error about its own plans, and streams into
 * tables, which are not supported yet.
 */
private[spark] object RefuseChanges extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case WithCTE(command, _) => check(command)
      case command => check(command)
    }
    plan
  }

  private def check(command: LogicalPlan): Unit = command match {
    case DeleteFromTable(target, _) => requireNoView(target)
    case UpdateTable(target, _, _) => requireNoView(target)
    case merge: MergeIntoTable => requireNoView(merge.targetTable)
    case stream: WriteToStreamStatement => requireNoStream(stream.sink)
    case stream: WriteToStream => requireNoStream(stream.sink)
    case _ =>
  }

  /** `df.writeStream.toTable(name)`, in the thread that starts the stream. */
  private def requireNoStream(sink: Table): Unit = sink match {
    case _: DeltaicTable => throw UnsupportedOperation.command("writeStream")
    case _ =>
  }

  private def requireNoView(target: LogicalPlan): Unit =
    target.collectFirst { case view: View => view }
      .filter(_.exists(isOurs))
      .foreach { view =>
        val found =
          if (view.isTempView) "a temporary view that does not just show columns that one has now"
          else "a view"
        throw DeltaicException(
          "DELTAIC_NAME_IS_NOT_A_TABLE",
          Map("name" -> view.desc.identifier.unquotedString, "found" -> found)
        )
      }

  private def isOurs(plan: LogicalPlan): Boolean = EliminateSubqueryAliases(plan) match {
    case ExtractV2Table(_: DeltaicTable) => true
    case _ => false
  }
}
