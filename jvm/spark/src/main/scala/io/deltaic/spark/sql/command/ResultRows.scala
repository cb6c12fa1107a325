package io.deltaic.spark.sql.command

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.catalyst.expressions.{Attribute, JsonToStructs, Literal}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.{fromAttributes, toAttributes}
import org.apache.spark.sql.types.{ArrayType, StructType}

import io.deltaic.protocol.SharedResource

/** The result of a command as rows. `command-results.json` has the columns of each command. */
private[command] object ResultRows {

  private lazy val columns: Map[String, StructType] =
    SharedResource.json("command-results.json").properties().asScala.map { entry =>
      val fields = entry.getValue.elements().asScala.map(_.asText)
      entry.getKey -> StructType.fromDDL(fields.mkString(", "))
    }.toMap

  /** The columns of a command; none if it returns no rows. */
  def output(command: String): Seq[Attribute] =
    toAttributes(columns.getOrElse(command, new StructType()))

  /**
   * Timestamps have a zone in the JSON, so the session's time zone does not affect them.
   *
   * @param json an array of objects
   */
  def of(json: String, output: Seq[Attribute]): Seq[Row] = {
    val schema = ArrayType(fromAttributes(output))
    val parsed = JsonToStructs(schema, Map("mode" -> "FAILFAST"), Literal(json), Some("UTC")).eval()
    CatalystTypeConverters.convertToScala(
      parsed,
      schema
    ).asInstanceOf[scala.collection.Seq[Row]].toSeq
  }
}
