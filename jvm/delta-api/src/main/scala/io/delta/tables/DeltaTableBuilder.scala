package io.delta.tables

import scala.annotation.varargs
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.deltaic.spark.{SessionTable, TableDefinition}

/**
 * The definition of a table to create or replace. Each method returns the builder, and `execute` creates the table in
 * one commit.
 *
 * {{{
 *   DeltaTable.createOrReplace(spark)
 *     .tableName("sales.orders")
 *     .addColumn("id", "BIGINT", nullable = false)
 *     .addColumn("day", "DATE")
 *     .clusterBy("day")
 *     .property("delta.enableDeletionVectors", "true")
 *     .execute()
 * }}}
 *
 * @param verb such as `CREATE TABLE`
 */
class DeltaTableBuilder private[tables] (spark: SparkSession, verb: String) {
  private var identifier = Option.empty[String]
  private var location = Option.empty[String]
  private var comment = Option.empty[String]
  private val columns = ArrayBuffer.empty[StructField]
  private var partitionColumns = Seq.empty[String]
  private var clusteringColumns = Seq.empty[String]
  private var properties = Map.empty[String, String]

  /** The name of the table in the catalog, or a path such as ``delta.`/data/t` ``. */
  def tableName(identifier: String): DeltaTableBuilder = {
    this.identifier = Some(identifier)
    this
  }

  /** A description of the table. */
  def comment(comment: String): DeltaTableBuilder = {
    this.comment = Option(comment)
    this
  }

  /** The directory of the table. */
  def location(location: String): DeltaTableBuilder = {
    this.location = Some(location)
    this
  }

  /** Adds a column, of a type in SQL. */
  def addColumn(colName: String, dataType: String): DeltaTableBuilder =
    addColumn(DeltaTable.columnBuilder(spark, colName).dataType(dataType).build())

  /** Adds a column. */
  def addColumn(colName: String, dataType: DataType): DeltaTableBuilder =
    addColumn(DeltaTable.columnBuilder(spark, colName).dataType(dataType).build())

  /** Adds a column, of a type in SQL. */
  def addColumn(colName: String, dataType: String, nullable: Boolean): DeltaTableBuilder =
    addColumn(
      DeltaTable.columnBuilder(spark, colName).dataType(dataType).nullable(nullable).build()
    )

  /** Adds a column. */
  def addColumn(colName: String, dataType: DataType, nullable: Boolean): DeltaTableBuilder =
    addColumn(
      DeltaTable.columnBuilder(spark, colName).dataType(dataType).nullable(nullable).build()
    )

  /** Adds a column, such as [[DeltaColumnBuilder]] builds. */
  def addColumn(col: StructField): DeltaTableBuilder = {
    columns += col
    this
  }

  /** Adds columns. */
  def addColumns(cols: StructType): DeltaTableBuilder = {
    columns ++= cols
    this
  }

  /** The partition columns. */
  @varargs
  def partitionedBy(colNames: String*): DeltaTableBuilder = {
    partitionColumns = colNames
    this
  }

  /** The clustering columns. */
  @varargs
  def clusterBy(colNames: String*): DeltaTableBuilder = {
    clusteringColumns = colNames
    this
  }

  /** Sets a property of the table. */
  def property(key: String, value: String): DeltaTableBuilder = {
    properties += key -> value
    this
  }

  /** Creates or replaces the table. */
  def execute(): DeltaTable = {
    if (identifier.isEmpty && location.isEmpty)
      throw BuilderError("A table", "Table name or location has to be specified")
    val path = SessionTable.create(
      spark,
      TableDefinition(
        verb,
        identifier,
        location,
        columns.toSeq,
        partitionColumns,
        clusteringColumns,
        comment,
        properties
      )
    )
    identifier.fold(DeltaTable.forPath(spark, path.get))(DeltaTable.forName(spark, _))
  }
}
