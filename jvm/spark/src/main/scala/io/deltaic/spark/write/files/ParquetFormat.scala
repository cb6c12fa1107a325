package io.deltaic.spark.write.files

import org.apache.parquet.column.ParquetProperties.WriterVersion
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap

import io.deltaic.protocol.{Metadata, Protocol, TableFeatures, TableProperties}

/** The requirements of a table's properties and features on its Parquet files. */
private[write] object ParquetFormat {

  private val FormatVersion = "delta.parquet.format.version"
  private val WritePartitionColumns = "delta.writePartitionColumnsToParquet"
  private val CompatibilityTag = "ICEBERG_COMPAT_VERSION"

  /**
   * The version of Parquet's writer for `delta.parquet.format.version`: pages and encodings of version 2 from
   * format 2 on. None if a write option specifies it, or if the table does not.
   */
  def writerVersion(
      properties: Map[String, String],
      options: CaseInsensitiveMap[String]
  ): Option[String] =
    properties
      .get(FormatVersion)
      .filterNot(_ => options.contains(ParquetOutputFormat.WRITER_VERSION))
      .map { text =>
        val version = text.trim match {
          case v if v.startsWith("1.") => WriterVersion.PARQUET_1_0
          case v if v.startsWith("2.") => WriterVersion.PARQUET_2_0
          case _ => throw StatisticsColumns.invalidProperty(FormatVersion, text)
        }
        version.toString
      }

  /** Whether the values of partition columns are in the files, too. A feature takes precedence over the property. */
  def materializesPartitions(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.supports(protocol, "materializePartitionColumns") ||
    TableFeatures.activeIcebergVersion(protocol, metadata).isDefined ||
    TableProperties.isTrue(metadata.configuration, WritePartitionColumns)

  /** Whether the materialized row tracking columns have the field IDs that Iceberg has reserved for them. */
  def isReadAsIcebergV3(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.activeIcebergVersion(protocol, metadata).contains(3)

  /** Whether fields of variants become columns of the files. */
  def shredsVariants(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.isActive(protocol, metadata, "variantShredding")

  /** The tags by which engines identify files that conform to Iceberg compatibility. */
  def tags(protocol: Protocol, metadata: Metadata): Map[String, String] =
    TableFeatures.activeIcebergVersion(protocol, metadata)
      .map(version => CompatibilityTag -> version.toString)
      .toMap
}
