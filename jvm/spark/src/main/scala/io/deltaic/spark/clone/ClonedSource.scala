package io.deltaic.spark.clone

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException, DeltaicThrowable}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.convert.{ConversionError, ParquetTable}
import io.deltaic.spark.restore.MissingFiles

/** The table whose files a clone has. */
private[clone] trait ClonedSource {

  /** Its directory. */
  def root: Path

  def numFiles: Int

  def sizeBytes: Long

  /** Paths are relative to the directory, or absolute. */
  def files: Iterator[AddFile]

  /** Where a deep clone has copies of the files. */
  def copies: CopiedFiles

  /** Whether a file may be written again under the same path. */
  def filesChange: Boolean

  /** The files that a shallow clone would have, and that do not exist. */
  def missing(spark: SparkSession, added: Seq[AddFile]): Seq[String]

  def missingError(file: String): DeltaicThrowable
}

/** A version of a Delta table. */
private[clone] final class ClonedVersion(log: DeltaLog, version: Long) extends ClonedSource {

  private val snapshot = log.at(version)
  private val table = log.withReadableFiles(snapshot)(_.files)

  override def root: Path = log.table

  override def numFiles: Int = table.size

  override def sizeBytes: Long = table.totalSizeBytes

  override def files: Iterator[AddFile] = (0 until table.size).iterator.map(table.add)

  override def copies: CopiedFiles = CopiedFiles.ofTable(snapshot)

  override def filesChange: Boolean = false

  override def missing(spark: SparkSession, added: Seq[AddFile]): Seq[String] =
    // The newest version of the source needs its files, too.
    if (version == log.latest().version) Nil
    else MissingFiles.among(spark, root, log.conf, added)

  override def missingError(file: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_DATA_FILE_MISSING",
    Map("table" -> root.toString, "version" -> version.toString, "file" -> file)
  )
}

/**
 * Parquet files.
 *
 * @param properties of the clone, which select the columns of which it has statistics
 */
private[clone] final class ClonedParquet(table: ParquetTable, properties: Map[String, String])
    extends ClonedSource {

  private val adds = table.adds(properties)

  override def root: Path = table.root

  override def numFiles: Int = adds.size

  override def sizeBytes: Long = table.sizeBytes

  override def files: Iterator[AddFile] = adds.iterator

  override def copies: CopiedFiles = CopiedFiles.ofParquet(root)

  override def filesChange: Boolean = true

  /** All of them have been read. */
  override def missing(spark: SparkSession, added: Seq[AddFile]): Seq[String] = Nil

  override def missingError(file: String): DeltaicThrowable =
    ConversionError.file(root, file, "it was deleted while it was copied")
}
