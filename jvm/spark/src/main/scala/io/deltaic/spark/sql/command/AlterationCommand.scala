package io.deltaic.spark.sql.command

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.functions.{max, min}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.catalog.{DeltaicTable, TableVersion}
import io.deltaic.spark.commit.Message
import io.deltaic.spark.schema.{IdentityColumn, TableSchema}

/** A statement that alters a table and is not of Spark's grammar, run as those that are (see [[PythonCommand]]). */
private[spark] sealed trait AlterationCommand extends UnaryRunnableCommand {

  /** The name of the Python command. */
  protected def command: String

  /** The arguments besides the table, which may depend on its newest version. */
  protected def arguments(
      spark: classic.SparkSession,
      log: DeltaLog,
      newest: => Option[Snapshot]
  ): Seq[(String, Any)]

  override def output: Seq[Attribute] = Nil

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    val log = CommandTarget.of(spark, child, command).log
    val python = new PythonCommand(spark, log, command)
    python.run(("table" -> log.table.toString) +: arguments(spark, log, python.newest))
    Nil
  }
}

/** `ALTER TABLE ... DROP FEATURE`. */
private[spark] final case class DropFeatureCommand(
    child: LogicalPlan,
    feature: String,
    truncatesHistory: Boolean
) extends AlterationCommand {
  override protected def command: String = "dropFeature"

  override protected def arguments(
      spark: classic.SparkSession,
      log: DeltaLog,
      newest: => Option[Snapshot]
  ): Seq[(String, Any)] = Seq("feature" -> feature, "truncateHistory" -> truncatesHistory)

  override protected def withNewChildInternal(newChild: LogicalPlan): DropFeatureCommand =
    copy(child = newChild)
}

/**
 * `DeltaTable.upgradeTableProtocol` and `addFeatureSupport`, which have no statement of their own in SQL.
 *
 * @param readerVersion with `writerVersion`, the versions to upgrade to
 * @param features to add to the protocol
 */
private[spark] final case class UpgradeProtocolCommand(
    child: LogicalPlan,
    readerVersion: Option[Long],
    writerVersion: Option[Long],
    features: Seq[String]
) extends AlterationCommand {
  override protected def command: String = "upgradeProtocol"

  override protected def arguments(
      spark: classic.SparkSession,
      log: DeltaLog,
      newest: => Option[Snapshot]
  ): Seq[(String, Any)] = Seq(
    "readerVersion" -> readerVersion,
    "writerVersion" -> writerVersion,
    "features" -> features
  )

  override protected def withNewChildInternal(newChild: LogicalPlan): UpgradeProtocolCommand =
    copy(child = newChild)
}

/** `ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY`. */
private[spark] final case class SyncIdentityCommand(child: LogicalPlan, column: Seq[String])
    extends AlterationCommand {
  override protected def command: String = "syncIdentity"

  override protected def arguments(
      spark: classic.SparkSession,
      log: DeltaLog,
      newest: => Option[Snapshot]
  ): Seq[(String, Any)] =
    Seq("column" -> column, "extreme" -> newest.flatMap(extreme(spark, log, _)))

  /** The extreme value of the column in a version, as an `ExtremeValue`; none if it is not an identity column. */
  private def extreme(
      spark: classic.SparkSession,
      log: DeltaLog,
      snapshot: Snapshot
  ): Option[ObjectNode] =
    for {
      name <- Option.when(column.size == 1)(column.head)
      field <- TableSchema.of(snapshot).stored.find(_.name.equalsIgnoreCase(name))
      identity <- IdentityColumn.of(field)
    } yield {
      val table = new DeltaicTable(spark, TableVersion.timeTravel(log, snapshot))
      val relation =
        DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
      val rows = SessionInternals.run(spark, relation)
      val values = rows.col(quoteIfNeeded(identity.name))
      val found = rows.agg(if (identity.step > 0) max(values) else min(values)).head()
      Message.of("ExtremeValue")("value" -> found.get(0))
    }

  override protected def withNewChildInternal(newChild: LogicalPlan): SyncIdentityCommand =
    copy(child = newChild)
}
