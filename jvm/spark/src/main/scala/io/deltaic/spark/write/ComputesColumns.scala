package io.deltaic.spark.write

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.{Metadata, MetadataBuilder, StructType}

/** A table that computes columns which a statement leaves out. */
private[spark] trait ComputesColumns {

  /** Where the table lies. */
  def location: Path

  /** The SQL expression of each generated column, by its name (Protocol § Generated Columns). */
  def generatedColumns: Map[String, String]

  /** The columns that the table numbers. */
  def identityColumns: Seq[IdentityColumn]

  final def computesColumns: Boolean = generatedColumns.nonEmpty || identityColumns.nonEmpty
}

/** How a query tells its write which columns were computed and not given by the user. */
private[spark] object ComputedColumns {
  private val Mark = "deltaic.computed"

  def marked(metadata: Metadata): Metadata =
    new MetadataBuilder().withMetadata(metadata).putBoolean(Mark, value = true).build()

  def namesIn(rows: StructType): Set[String] =
    rows.filter(field => isMarked(field.metadata)).map(_.name).toSet

  def isMarked(metadata: Metadata): Boolean = metadata.contains(Mark)
}
