package io.deltaic.spark.convert

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** A file that cannot be one of a Delta table. It is thrown in tasks, too, which return it as a value. */
private[convert] final class InvalidFile(val file: String, reason: String)
    extends RuntimeException(reason)

/** Why files cannot become a Delta table. */
private[spark] object ConversionError {

  /** @param reason a part of a sentence, such as "it is no Parquet file" */
  def file(table: Path, file: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_CONVERT_FILE_INVALID",
      Map("table" -> table.toString, "file" -> file, "reason" -> reason)
    )

  /** @param reason a part of a sentence, such as "it is a view" */
  def source(name: String, reason: String): DeltaicThrowable =
    DeltaicException("DELTAIC_CONVERT_SOURCE_INVALID", Map("name" -> name, "reason" -> reason))

  def noFiles(table: Path): DeltaicThrowable =
    DeltaicException("DELTAIC_CONVERT_NO_FILES", Map("table" -> table.toString))

  /** Two files, or a file and the catalog, have other types for a column. */
  def types(
      table: Path,
      column: Seq[String],
      one: (String, String),
      other: (String, String)
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_CONVERT_TYPES_DIFFER",
    Map(
      "table" -> table.toString,
      "column" -> column.mkString("."),
      "type" -> one._1,
      "file" -> one._2,
      "otherType" -> other._1,
      "otherFile" -> other._2
    )
  )

  /** Two files spell the name of a column differently. */
  def spellings(
      table: Path,
      one: (Seq[String], String),
      other: (Seq[String], String)
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_CONVERT_NAMES_DIFFER",
    Map(
      "table" -> table.toString,
      "column" -> one._1.mkString("."),
      "file" -> one._2,
      "otherColumn" -> other._1.mkString("."),
      "otherFile" -> other._2
    )
  )

  /** The directories of a file are not those of the partition columns. */
  def directories(
      table: Path,
      file: String,
      found: Seq[String],
      expected: Seq[String]
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_CONVERT_DIRECTORIES_DIFFER",
    Map(
      "table" -> table.toString,
      "file" -> file,
      "found" -> listed(found),
      "expected" -> listed(expected)
    )
  )

  def value(
      table: Path,
      file: String,
      column: String,
      value: String,
      dataType: String
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_CONVERT_PARTITION_VALUE",
    Map(
      "table" -> table.toString,
      "file" -> file,
      "column" -> column,
      "value" -> value,
      "type" -> dataType
    )
  )

  def partitioning(table: String, stated: String, catalog: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_CONVERT_PARTITIONING_DIFFERS",
      Map("table" -> table, "stated" -> stated, "catalog" -> catalog)
    )

  private def listed(columns: Seq[String]): String =
    if (columns.isEmpty) "none" else columns.mkString(", ")
}
