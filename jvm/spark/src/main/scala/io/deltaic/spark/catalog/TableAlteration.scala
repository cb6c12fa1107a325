package io.deltaic.spark.catalog

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableChange._
import org.apache.spark.sql.connector.catalog.constraints.{Check, Constraint}
import org.apache.spark.sql.connector.catalog.{TableCatalog, TableChange}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.bridge.{CommitterReply, Committers, Json}
import io.deltaic.spark.{SessionSettings, UnsupportedOperation}

/** `ALTER TABLE`: finds the Python command that Spark's changes of a table are about. */
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
    // A column is what it is to become; or Spark takes it for that, since it knows no limits of texts within columns.
    case Seq() if !table.tableSchema.all.exists(LimitedTexts.areWithin) => ()
    case Seq() =>
      throw UnsupportedOperation(
        location,
        "ALTER COLUMN with the type that the column has, beside texts of limited length within columns, whose limits" +
          " ALTER TABLE ... REPLACE COLUMNS alone can lift,"
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

  private def run(command: String, arguments: (String, Any)*): Unit = {
    val json = Json.obj(("table" -> location) +: arguments: _*).toString
    CommitterReply.require(Committers.current(spark).run(spark, command, json))
    ()
  }
}

private[spark] object TableAlteration {

  /** What Spark passes as properties and the log has no place for. */
  private val NotStored =
    Set(TableCatalog.PROP_LOCATION, TableCatalog.PROP_PROVIDER, TableCatalog.PROP_COLLATION)

  /** Keys are not part of the protocol: a table could only pretend to have them. */
  def requireCheck(table: String, constraint: Constraint): Check = constraint match {
    case check: Check => check
    case other =>
      throw DeltaicException(
        "DELTAIC_UNSUPPORTED_CONSTRAINT",
        Map("table" -> table, "constraint" -> other.toDDL)
      )
  }
}
