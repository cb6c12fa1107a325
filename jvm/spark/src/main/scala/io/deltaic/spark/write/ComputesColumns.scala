package io.deltaic.spark.write

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.{Metadata, MetadataBuilder, StructType}

import io.deltaic.spark.schema.IdentityColumn

/** A table with columns that are computed if a statement leaves them out. */
private[spark] trait ComputesColumns {

  /** The location of the table. */
  def location: Path

  /** The SQL expression of each generated column, by its name (Protocol § Generated Columns). */
  def generatedColumns: Map[String, String]

  /** The identity columns (Protocol § Identity Columns). */
  def identityColumns: Seq[IdentityColumn]

  final def computesColumns: Boolean = generatedColumns.nonEmpty || identityColumns.nonEmpty
}

/** Marks the columns of a query that were computed and not specified by the user, for its write. */
private[spark] object ComputedColumns {
  private val Mark = "deltaic.computed"

  def marked(metadata: Metadata): Metadata =
    new MetadataBuilder().withMetadata(metadata).putBoolean(Mark, value = true).build()

  def namesIn(rows: StructType): Set[String] =
    rows.filter(field => hasUuidPrefix(field.metadata)).map(_.name).toSet

  def hasUuidPrefix(metadata: Metadata): Boolean = metadata.contains(Mark)
}
