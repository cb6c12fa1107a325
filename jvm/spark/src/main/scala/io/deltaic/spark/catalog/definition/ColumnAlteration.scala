package io.deltaic.spark.catalog.definition

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.catalog.TableChange
import org.apache.spark.sql.connector.catalog.TableChange._
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.commit.Message
import io.deltaic.spark.schema.{CharVarchar, SchemaChecks}
import io.deltaic.spark.util.Json

/**
 * Translates Spark's column changes to the name and arguments of a Python command.
 *
 * @param table for messages
 */
private[catalog] final class ColumnAlteration(table: String) {

  /** The command that makes all the changes in one commit; none if no command does. */
  def command(changes: Seq[TableChange]): Option[(String, Seq[(String, Any)])] = {
    val added = changes.collect { case add: AddColumn => add }
    val dropped = changes.collect { case drop: DeleteColumn => drop }
    val changed = changes.collect { case change: ColumnChange => change }
    changes match {
      case Seq() => None
      case Seq(rename: RenameColumn) =>
        requireFree(rename.fieldNames.toSeq.init :+ rename.newName)
        Some("renameColumn" -> Seq("column" -> rename.fieldNames.toSeq, "name" -> rename.newName))
      case _ if added.size == changes.size => Some("addColumns" -> Seq("columns" -> added.map(of)))
      case _ if dropped.size == changes.size =>
        val paths = dropped.map(_.fieldNames.toSeq)
        val ifExists = dropped.exists(_.ifExists.booleanValue)
        Some("dropColumns" -> Seq("columns" -> paths, "ifExists" -> ifExists))
      // REPLACE COLUMNS: drops all columns, and adds the given ones.
      case _ if added.nonEmpty && added.size + dropped.size == changes.size =>
        Some("replaceColumns" -> Seq("columns" -> added.map(of)))
      case _ if changed.size == changes.size && changed.forall(change(_).isDefined) =>
        Some("alterColumns" -> Seq("columns" -> byColumn(changed)))
      case _ => None
    }
  }

  private def of(add: AddColumn): ObjectNode = {
    val path = add.fieldNames.toSeq
    requireFree(path)
    val bare = StructField(path.last, add.dataType, add.isNullable)
    val field = Option(add.comment).fold(bare)(bare.withComment)
    Message.of("NewColumn")(
      "parent" -> path.init,
      "specified" -> json(field),
      "stored" -> json(CharVarchar.stored(StructType(Seq(field))).head),
      "position" -> Option(add.position).map(place),
      "default" -> Option(add.defaultValue).map(_.getSql)
    )
  }

  /** One entry for each column, in the order of the statement. */
  private def byColumn(changes: Seq[ColumnChange]): Seq[ObjectNode] = {
    val columns = changes.map(_.fieldNames.toSeq).distinct
    columns.map { column =>
      val own = changes.filter(_.fieldNames.toSeq == column).flatMap(change)
      Message.of("ColumnChange")(("column" -> column) +: own: _*)
    }
  }

  private def change(change: ColumnChange): Option[(String, Any)] = change match {
    case default: UpdateColumnDefaultValue =>
      Some("default" -> Option(default.newCurrentDefault).map(_.getSql).getOrElse(""))
    case typed: UpdateColumnType =>
      requireNoCollation(typed.newDataType)
      Some("type" -> typed.newDataType.json.stripPrefix("\"").stripSuffix("\""))
    case nulls: UpdateColumnNullability => Some("nullable" -> nulls.nullable)
    case comment: UpdateColumnComment => Some("comment" -> comment.newComment)
    case moved: UpdateColumnPosition => Some("position" -> place(moved.position))
    case _ => None
  }

  private def place(position: ColumnPosition): ObjectNode = position match {
    case after: After => Message.of("Position")("after" -> after.column)
    case _ => Message.of("Position")() // FIRST
  }

  private def json(field: StructField): JsonNode =
    Json.parse(StructType(Seq(field)).json).get("fields").get(0)

  /** The name of a type does not include its collation. */
  private def requireNoCollation(dataType: DataType): Unit =
    if (SchemaInternals.hasCollation(dataType))
      throw DeltaicException(
        "DELTAIC_UNSUPPORTED_FEATURE_REQUESTED",
        Map("table" -> table, "features" -> "collations")
      )

  private def requireFree(path: Seq[String]): Unit =
    if (path.size == 1)
      SchemaChecks.requireNewNames(table, Seq(path.head))
}
