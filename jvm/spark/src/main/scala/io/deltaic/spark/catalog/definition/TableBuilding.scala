package io.deltaic.spark.catalog.definition

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.{
  ColumnDefinition,
  CreateTable,
  LogicalPlan,
  ReplaceTable
}
import org.apache.spark.sql.catalyst.util.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types._

import io.deltaic.spark.catalog.CreateStatement
import io.deltaic.spark.schema.{CharVarchar, ColumnKeys}
import io.deltaic.spark.util.Json

/** The statement for a `DeltaTableBuilder` definition. Spark parses names and types. */
private[spark] final class TableBuilding(spark: SparkSession, definition: ObjectNode) {

  private val parser: ParserInterface = spark.sessionState.sqlParser
  private val name = text("name")
  private val location = text("location")

  /**
   * The session's parser would substitute variables such as `${...}` in strings. Columns can have metadata that
   * their SQL lacks.
   */
  def plan: LogicalPlan = {
    val fields = elements("columns").map(column)
    CatalystSqlParser.parsePlan(statement(fields).sql).transform {
      case create: CreateTable => create.copy(columns = whole(create.columns, fields))
      case replace: ReplaceTable => replace.copy(columns = whole(replace.columns, fields))
    }
  }

  private def whole(
      parsed: Seq[ColumnDefinition],
      fields: Seq[StructField]
  ): Seq[ColumnDefinition] =
    parsed.zip(fields).map { case (column, field) =>
      column.copy(
        dataType = CharVarchar.typeOf(field),
        metadata = ColumnDefinitions.withoutDeclared(field.metadata)
      )
    }

  private def statement(columns: Seq[StructField]): CreateStatement = CreateStatement(
    verb = definition.get("verb").asText,
    name = name.fold(s"delta.${quoteIdentifier(location.get)}") { given =>
      parser.parseMultipartIdentifier(given).map(quoteIfNeeded).mkString(".")
    },
    columns = columns,
    partitionedBy = elements("partitionedBy").map(_.asText),
    clusteredBy = elements("clusterBy").map(c => parser.parseMultipartIdentifier(c.asText)),
    comment = text("comment"),
    location = location.filter(_ => name.isDefined),
    properties = Json.strings(definition.get("properties"))
  )

  private def column(node: JsonNode): StructField =
    if (node.has("field")) {
      val schema = s"""{"type":"struct","fields":[${node.get("field").asText}]}"""
      DataType.fromJson(schema).asInstanceOf[StructType].head
    } else {
      val bare = StructField(
        node.get("name").asText,
        dataType(node),
        node.get("nullable").asBoolean,
        metadata(node)
      )
      if (node.has("comment")) bare.withComment(node.get("comment").asText) else bare
    }

  private def dataType(node: JsonNode): DataType =
    if (node.has("typeJson")) DataType.fromJson(node.get("typeJson").asText)
    else parser.parseDataType(node.get("typeSql").asText)

  private def metadata(node: JsonNode): Metadata = {
    val metadata = new MetadataBuilder()
    if (node.has("generatedAs"))
      metadata.putString(ColumnKeys.GenerationExpression, node.get("generatedAs").asText)
    if (node.has("identity")) {
      val identity = node.get("identity")
      metadata.putLong(ColumnKeys.IdentityStart, identity.get("start").asLong)
      metadata.putLong(ColumnKeys.IdentityStep, identity.get("step").asLong)
      metadata.putBoolean(
        ColumnKeys.IdentityAllowExplicitInsert,
        identity.get("allowExplicitInsert").asBoolean
      )
    }
    metadata.build()
  }

  private def text(key: String): Option[String] =
    Option(definition.get(key)).filterNot(_.isNull).map(_.asText)

  private def elements(key: String): Seq[JsonNode] =
    definition.path(key).elements.asScala.toSeq
}
