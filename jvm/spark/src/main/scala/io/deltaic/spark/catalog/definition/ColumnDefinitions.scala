package io.deltaic.spark.catalog.definition

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableCatalogCapability._
import org.apache.spark.sql.connector.catalog.{
  Column,
  Identifier,
  TableCatalogCapability,
  TableInfo
}
import org.apache.spark.sql.deltaic.{ExpressionInternals, SchemaInternals}
import org.apache.spark.sql.types.{Metadata, MetadataBuilder, StructType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.schema.{CharVarchar, ColumnKeys}

/** Converts the columns and constraints of a `CREATE TABLE` to their form in the log. */
private[spark] object ColumnDefinitions {

  /** The capabilities for the creation of Deltaic tables. */
  val capabilities: JSet[TableCatalogCapability] =
    EnumSet.of(
      SUPPORT_COLUMN_DEFAULT_VALUE,
      SUPPORT_TABLE_CONSTRAINT,
      SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS,
      SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS
    )

  /**
   * The columns with their metadata in the log (Protocol § Column Metadata, § Default
   * Columns). Spark itself writes defaults there.
   */
  def schema(spark: SparkSession, columns: Array[Column]): StructType =
    typed(spark, CharVarchar.stored(declared(columns)))

  private def declared(columns: Array[Column]): StructType =
    StructType(SchemaInternals.schema(columns).zip(columns).map { case (field, column) =>
      val metadata = new MetadataBuilder().withMetadata(field.metadata)
      Option(column.generationExpression).foreach {
        metadata.putString(ColumnKeys.GenerationExpression, _)
      }
      Option(column.identityColumnSpec).foreach { identity =>
        metadata.putLong(ColumnKeys.IdentityStart, identity.getStart)
        metadata.putLong(ColumnKeys.IdentityStep, identity.getStep)
        metadata.putBoolean(
          ColumnKeys.IdentityAllowExplicitInsert,
          identity.isAllowExplicitInsert
        )
      }
      field.copy(metadata = metadata.build())
    })

  /**
   * Casts generation expressions to exactly their columns' types: Spark accepts narrower types, but delta-spark refuses
   * to change the metadata of a table with such an expression.
   */
  private def typed(spark: SparkSession, columns: StructType): StructType = {
    val attributes = ExpressionInternals.attributes(columns)
    val key = ColumnKeys.GenerationExpression
    StructType(columns.map {
      case field if field.metadata.contains(key) =>
        val sql = field.metadata.getString(key)
        val typed = ExpressionInternals.typed(spark, sql, attributes, field.dataType)
        val metadata = new MetadataBuilder().withMetadata(field.metadata).putString(key, typed)
        field.copy(metadata = metadata.build())
      case field => field
    })
  }

  /** Name and condition of each CHECK constraint. */
  def constraints(table: String, info: TableInfo): Map[String, String] =
    info.constraints.map(TableAlteration.requireCheck(table, _))
      .map(check => check.name -> check.predicateSql).toMap

  /**
   * Refuses a table of another provider with columns or constraints that the extended catalog would
   * drop: Spark assumes our capabilities for all tables of the catalog.
   */
  def requireSupported(
      supported: JSet[TableCatalogCapability],
      identifier: Identifier,
      info: TableInfo
  ): Unit = {
    val needed = Seq(
      SUPPORT_TABLE_CONSTRAINT -> info.constraints.nonEmpty,
      SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS ->
        info.columns.exists(_.generationExpression != null),
      SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS ->
        info.columns.exists(_.identityColumnSpec != null)
    )
    needed.collectFirst { case (capability, true) if !supported.contains(capability) => capability }
      .foreach { capability =>
        throw DeltaicException(
          "DELTAIC_PROVIDER_LACKS_CAPABILITY",
          Map(
            "table" -> (identifier.namespace :+ identifier.name).map(quoteIfNeeded).mkString("."),
            "provider" -> info.properties.getOrDefault("provider", "the default"),
            "capability" -> capability.toString
          )
        )
      }
  }

  /**
   * The columns of a query for a new table: without the defaults of the table that they come from, and without
   * metadata that is for the query alone.
   */
  def ofRows(schema: StructType): StructType =
    ColumnKeys.without(OfWriters ++ ColumnKeys.OfPlans, schema)

  /** The metadata of a column that is not a part of its definition in SQL. */
  def withoutDeclared(metadata: Metadata): Metadata = ColumnKeys.without(Declared, metadata)

  private val OfWriters = Seq(ColumnKeys.CurrentDefault, ColumnKeys.ExistsDefault)

  private val Declared = OfWriters ++ Seq(
    "comment",
    ColumnKeys.GenerationExpression,
    ColumnKeys.IdentityStart,
    ColumnKeys.IdentityStep,
    ColumnKeys.IdentityAllowExplicitInsert,
    ColumnKeys.IdentityHighWaterMark
  )
}
