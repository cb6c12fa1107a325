package io.deltaic.spark.catalog

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
import org.apache.spark.sql.deltaic.{ExpressionShims, SchemaShims}
import org.apache.spark.sql.types.{Metadata, MetadataBuilder, StructType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.scan.ColumnKeys

/** What the columns and constraints of a `CREATE TABLE` are in the log. */
private[spark] object ColumnDefinitions {

  /** What a table of ours can be created with. */
  val capabilities: JSet[TableCatalogCapability] =
    EnumSet.of(
      SUPPORT_COLUMN_DEFAULT_VALUE,
      SUPPORT_TABLE_CONSTRAINT,
      SUPPORTS_CREATE_TABLE_WITH_GENERATED_COLUMNS,
      SUPPORTS_CREATE_TABLE_WITH_IDENTITY_COLUMNS
    )

  /**
   * The columns with what the log keeps in their metadata (Protocol § Column Metadata, § Default
   * Columns). Spark writes defaults there by itself.
   */
  def schema(spark: SparkSession, columns: Array[Column]): StructType =
    typed(spark, LimitedTexts.stored(stated(columns)))

  private def stated(columns: Array[Column]): StructType =
    StructType(SchemaShims.schema(columns).zip(columns).map { case (field, column) =>
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
   * Generation expressions are of exactly their columns' types: Spark takes narrower ones, and delta-spark refuses
   * to change the definition of a table that has one.
   */
  private def typed(spark: SparkSession, columns: StructType): StructType = {
    val attributes = ExpressionShims.attributes(columns)
    val key = ColumnKeys.GenerationExpression
    StructType(columns.map {
      case field if field.metadata.contains(key) =>
        val sql = field.metadata.getString(key)
        val typed = ExpressionShims.typed(spark, sql, attributes, field.dataType)
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
   * Refuses a table of another provider with columns or constraints that the catalog below ours would
   * leave out: the session believes that all of its catalog can what ours can.
   */
  def requireKnownTo(
      known: JSet[TableCatalogCapability],
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
    needed.collectFirst { case (capability, true) if !known.contains(capability) => capability }
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
   * The columns of a query's rows, without what a table they come from says about writing to it, for a table
   * made of them is another one, and without what concerns the query alone.
   */
  def ofRows(schema: StructType): StructType =
    ColumnKeys.without(OfWriters ++ ColumnKeys.OfPlans, schema)

  /** What a column's metadata says beside its definition in SQL. */
  def withoutStated(metadata: Metadata): Metadata = ColumnKeys.without(Stated, metadata)

  private val OfWriters = Seq(ColumnKeys.CurrentDefault, ColumnKeys.ExistsDefault)

  private val Stated = OfWriters ++ Seq(
    "comment",
    ColumnKeys.GenerationExpression,
    ColumnKeys.IdentityStart,
    ColumnKeys.IdentityStep,
    ColumnKeys.IdentityAllowExplicitInsert,
    ColumnKeys.IdentityHighWaterMark
  )
}
