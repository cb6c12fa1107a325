package io.deltaic.spark.scan

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
import io.deltaic.spark.skipping.SkippingSchema

/**
 * The columns of a table as Spark types, split as they are stored: partition columns live in the
 * log, data columns in the files.
 *
 * @param stored the columns as the log has them, with all their metadata
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
   * The columns as users see them: what says how they are stored is left out. What the table computes
   * may be left out of a statement, so Spark must not ask for it where it is NOT NULL: the writer does.
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

  /** The name under which the log keeps a column's values, if the table is partitioned by it. */
  def logName(column: String): String =
    PhysicalSchema.nameOf(stored(column), mapping != ColumnMapping.NoMapping)

  /** What the Parquet reader is asked for to read a data column, all of it or some nested fields. */
  def inFiles(column: StructField): StructField =
    PhysicalSchema.requested(column, stored, mapping)

  /** How filters on this table find what the log says about files. */
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

  private[scan] def invalid(table: String, reason: String): DeltaicThrowable =
    DeltaicException("DELTAIC_INVALID_SCHEMA", Map("table" -> table, "reason" -> reason))

  private def parse(table: String, json: String): StructType = {
    val parsed =
      try DataType.fromJson(json)
      catch {
        case NonFatal(e) => throw invalid(table, s"it holds what is no type: ${e.getMessage}")
      }
    parsed match {
      case struct: StructType => struct
      case other => throw invalid(table, s"its top level is ${other.catalogString}, no struct")
    }
  }

  /** A table made from another one's columns must not take over how those are stored. */
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
