package io.deltaic.spark.schema

import scala.util.control.NonFatal

import org.apache.spark.sql.types._

import io.deltaic.protocol.{
  DeltaicException,
  DeltaicThrowable,
  Metadata => TableMetadata,
  Protocol,
  TableFeatures
}
import io.deltaic.replay.Snapshot

/**
 * The columns of a table as Spark types, split as they are stored: partition columns live in the
 * log, data columns in the files.
 *
 * @param stored the columns as in the log, with all their metadata
 * @param mapping how data files and log name them
 * @param generated the expressions of generated columns
 * @param identity the names of identity columns
 */
private[spark] final case class TableSchema(
    stored: StructType,
    partitionColumns: Seq[String],
    mapping: ColumnMapping,
    rowTracking: Option[RowTracking] = None,
    generated: Map[String, String] = Map.empty,
    identity: Set[String] = Set.empty
) {
  private val partitionNames = partitionColumns.toSet

  /**
   * The columns as users see them, without metadata about how they are stored. A statement may omit
   * computed columns, so they are nullable here; the writer checks NOT NULL.
   */
  val all: StructType = StructType(ColumnKeys.without(TableSchema.Hidden, stored).map { field =>
    if (isComputed(field)) field.copy(nullable = true) else field
  })

  private def isComputed(field: StructField): Boolean =
    generated.contains(field.name) || identity.contains(field.name)

  val data: StructType = StructType(all.filterNot(f => partitionNames(f.name)))

  /** In the order of the table's `partitionColumns`, which is the order of the directories. */
  val partition: StructType = StructType(partitionColumns.map(all.apply))

  def isPartition(column: String): Boolean = partitionNames(column)

  /** The name under which the log stores a column's partition values, if the table is partitioned by it. */
  def logName(column: String): String =
    PhysicalSchema.nameOf(stored(column), mapping != ColumnMapping.NoMapping)

  /** The column to request from the Parquet reader for a data column, with all or some nested fields. */
  def inFiles(column: StructField): StructField =
    PhysicalSchema.requested(column, stored, mapping)

  /** How filters on this table are mapped to the statistics and partition values in the log. */
  @transient lazy val skipping: SkippingSchema = new SkippingSchema(
    stored,
    partitionColumns,
    PhysicalSchema.nameOf(_, mapping != ColumnMapping.NoMapping)
  )
}

private[spark] object TableSchema {

  def of(snapshot: Snapshot): TableSchema =
    of(snapshot.table.toString, snapshot.protocol, snapshot.metadata)

  /** Reads a `metaData` action (Protocol § Schema Serialization Format: Spark's own JSON). */
  def of(table: String, protocol: Protocol, metadata: TableMetadata): TableSchema = {
    val declared = parse(table, metadata.schemaString)
    SchemaChecks.requireKinds(table, declared)
    val stored =
      if (TableFeatures.supports(protocol, "allowColumnDefaults")) declared
      else ColumnKeys.without(Seq(ColumnKeys.CurrentDefault), declared)
    val missing = metadata.partitionColumns.filterNot(stored.fieldNames.contains)
    if (missing.nonEmpty)
      throw invalid(table, s"partition column ${missing.mkString(", ")} is not among its columns")
    val mapping = ColumnMapping.of(table, protocol, metadata)
    SchemaChecks.requireReadableNames(table, stored)
    SchemaChecks.requireMapped(table, stored, mapping)
    SchemaChecks.requireKnownTypeChanges(table, stored)
    TableSchema(
      stored,
      metadata.partitionColumns,
      mapping,
      RowTracking.of(protocol, metadata),
      generatedIn(stored, protocol),
      identityIn(stored, protocol)
    )
  }

  /** Protocol § Generated Columns. */
  private def generatedIn(stored: StructType, protocol: Protocol): Map[String, String] =
    if (!TableFeatures.supports(protocol, "generatedColumns")) Map.empty
    else
      stored.collect {
        case field if field.metadata.contains(ColumnKeys.GenerationExpression) =>
          field.name -> field.metadata.getString(ColumnKeys.GenerationExpression)
      }.toMap

  /** Protocol § Identity Columns. */
  private def identityIn(stored: StructType, protocol: Protocol): Set[String] =
    if (!TableFeatures.supports(protocol, "identityColumns")) Set.empty
    else stored.collect { case f if f.metadata.contains(ColumnKeys.IdentityStart) => f.name }.toSet

  private[spark] def invalid(table: String, reason: String): DeltaicThrowable =
    DeltaicException("DELTAIC_INVALID_SCHEMA", Map("table" -> table, "reason" -> reason))

  private def parse(table: String, json: String): StructType = {
    val parsed =
      try DataType.fromJson(json)
      catch {
        case NonFatal(e) => throw invalid(table, s"it contains an invalid type: ${e.getMessage}")
      }
    parsed match {
      case struct: StructType => struct
      case other => throw invalid(table, s"its top level is ${other.catalogString}, not a struct")
    }
  }

  /** A table created from another table's columns must not copy this metadata. */
  private val Hidden = ColumnKeys.OfPlans ++ Seq(
    PhysicalSchema.PhysicalName,
    PhysicalSchema.ColumnId,
    "delta.columnMapping.nested.ids",
    "parquet.field.id",
    "parquet.field.nested.ids",
    TypeChange.Key,
    ColumnKeys.ExistsDefault,
    ColumnKeys.Invariant,
    ColumnKeys.GenerationExpression,
    ColumnKeys.IdentityStart,
    ColumnKeys.IdentityStep,
    ColumnKeys.IdentityHighWaterMark,
    ColumnKeys.IdentityAllowExplicitInsert
  )
}
