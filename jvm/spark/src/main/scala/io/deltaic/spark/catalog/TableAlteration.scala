package io.deltaic.spark.catalog

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableChange
import org.apache.spark.sql.connector.catalog.TableChange.{
  AddConstraint,
  DropConstraint,
  RemoveProperty,
  SetProperty,
  UpdateColumnDefaultValue,
  UpdateColumnType
}
import org.apache.spark.sql.connector.catalog.constraints.{Check, Constraint}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.bridge.{CommitterReply, Committers, Json}
import io.deltaic.spark.write.WriteTransaction

/** `ALTER TABLE`, as far as the Python commands behind it go. */
private[spark] final class TableAlteration(spark: SparkSession, table: DeltaicTable) {

  private val location = table.log.table.toString

  def apply(changes: Seq[TableChange]): Unit = {
    if (!table.followsNewVersions)
      throw WriteTransaction.unsupported(
        location,
        s"ALTER TABLE of the older version ${table.snapshot.version}"
      )
    alter(changes)
  }

  private def alter(changes: Seq[TableChange]): Unit = changes match {
    case Seq(add: AddConstraint) =>
      val check = TableAlteration.requireCheck(location, add.constraint)
      run("addConstraint", "name" -> check.name, "expression" -> check.predicateSql)
    case Seq(drop: DropConstraint) =>
      run("dropConstraint", "name" -> drop.name, "ifExists" -> drop.ifExists)
    case Seq(change: UpdateColumnDefaultValue) =>
      val sql = Option(change.newCurrentDefault).map(_.getSql).getOrElse("")
      run("alterColumn", "column" -> change.fieldNames.toSeq, "default" -> sql)
    case Seq(change: UpdateColumnType) =>
      val name = change.newDataType.json.stripPrefix("\"").stripSuffix("\"")
      run("alterColumn", "column" -> change.fieldNames.toSeq, "type" -> name)
    case properties if properties.nonEmpty && properties.forall(isProperty) =>
      run(
        "alterProperties",
        "set" -> properties.collect { case set: SetProperty => set.property -> set.value }.toMap,
        "unset" -> properties.collect { case unset: RemoveProperty => unset.property }
      )
    case others =>
      val kinds = others.map(_.getClass.getSimpleName).distinct.mkString(", ")
      throw WriteTransaction.unsupported(location, s"ALTER TABLE ($kinds)")
  }

  private def isProperty(change: TableChange): Boolean = change match {
    case _: SetProperty | _: RemoveProperty => true
    case _ => false
  }

  private def run(command: String, arguments: (String, Any)*): Unit = {
    val json = Json.obj(("table" -> location) +: arguments: _*).toString
    CommitterReply.require(Committers.current(spark).run(command, json))
    ()
  }
}

private[spark] object TableAlteration {

  /** Keys are not part of the protocol: a table could only pretend to have them. */
  def requireCheck(table: String, constraint: Constraint): Check = constraint match {
    case check: Check => check
    case other =>
      throw new DeltaicException(
        "DELTAIC_UNSUPPORTED_CONSTRAINT",
        Map("table" -> table, "constraint" -> other.toDDL)
      )
  }
}
