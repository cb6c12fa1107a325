package io.deltaic.spark.catalog.definition

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableChange._
import org.apache.spark.sql.connector.catalog.constraints.{Check, Constraint}
import org.apache.spark.sql.connector.catalog.{TableCatalog, TableChange}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.schema.CharVarchar
import io.deltaic.spark.util.{SessionSettings, UnsupportedOperation}

/** `ALTER TABLE`: runs the Python command for Spark's table changes. */
private[spark] final class TableAlteration(spark: SparkSession, table: DeltaicTable) {

  private val location = table.log.table.toString
  private val columns = new ColumnAlteration(location)

  def apply(changes: Seq[TableChange]): Unit = {
    if (!table.followsNewVersions)
      throw UnsupportedOperation(
        location,
        s"ALTER TABLE of the older version ${table.snapshot.version}"
      )
    alter(changes)
  }

  private def alter(changes: Seq[TableChange]): Unit = changes match {
    // No change: the column has the requested type, or only nested CHAR or VARCHAR lengths differ, unseen by Spark.
    case Seq() if !table.tableSchema.all.exists(CharVarchar.areWithin) => ()
    case Seq() =>
      throw UnsupportedOperation(
        location,
        "ALTER COLUMN with the type that the column has, in a table with CHAR or VARCHAR types nested in columns," +
          " whose lengths only ALTER TABLE ... REPLACE COLUMNS can remove,"
      )
    case Seq(add: AddConstraint) =>
      val check = TableAlteration.requireCheck(location, add.constraint)
      run("addConstraint", "name" -> check.name, "expression" -> check.predicateSql)
    case Seq(drop: DropConstraint) =>
      val mayBeMissing = drop.ifExists ||
        SessionSettings.isOn(spark, "constraints.assumesDropIfExists.enabled")
      run("dropConstraint", "name" -> drop.name, "ifExists" -> mayBeMissing)
    case Seq(cluster: ClusterBy) =>
      run("clusterBy", "columns" -> cluster.clusteringColumns.toSeq.map(_.fieldNames.toSeq))
    case properties if properties.nonEmpty && properties.forall(isProperty) =>
      run(
        "alterProperties",
        "set" -> properties.collect { case set: SetProperty => set.property -> set.value }.toMap,
        "unset" -> properties.collect { case unset: RemoveProperty => unset.property }
      )
    case others =>
      val (command, arguments) = columns.command(others).getOrElse {
        val kinds = others.map(_.getClass.getSimpleName).distinct.mkString(", ")
        throw UnsupportedOperation(location, s"ALTER TABLE ($kinds)")
      }
      run(command, arguments: _*)
  }

  private def isProperty(change: TableChange): Boolean = change match {
    case set: SetProperty => !TableAlteration.NotStored(set.property)
    case unset: RemoveProperty => !TableAlteration.NotStored(unset.property)
    case _ => false
  }

  private def run(command: String, arguments: (String, Any)*): Unit =
    new PythonCommand(spark, table.log, command).run(("table" -> location) +: arguments)
}

private[spark] object TableAlteration {

  /** Properties of Spark that are not stored in the log. */
  private val NotStored =
    Set(TableCatalog.PROP_LOCATION, TableCatalog.PROP_PROVIDER, TableCatalog.PROP_COLLATION)

  /** Requires a CHECK constraint: the protocol has no primary or foreign keys. */
  def requireCheck(table: String, constraint: Constraint): Check = constraint match {
    case check: Check => check
    case other =>
      throw DeltaicException(
        "DELTAIC_UNSUPPORTED_CONSTRAINT",
        Map("table" -> table, "constraint" -> other.toDDL)
      )
  }
}
