package io.deltaic.spark.scan.files

import java.io.FileNotFoundException
import java.time.ZoneId

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.{AddFile, DeltaicException, DeltaicThrowable, LogPath}
import io.deltaic.spark.scan.deletionvectors.DeletionVectorConstant
import io.deltaic.spark.schema.{FileMetadata, PartitionValues, ScanColumns}

/** Cuts files into splits by Spark's own sizing rules, and packs splits into tasks. */
private[spark] object FileSplits {

  /**
   * @param constants the columns whose value is the same for each row of a file
   * @param conf reaches the file system
   * @param changedRows the value of [[ScanColumns.ChangedRows]]
   */
  def plan(
      spark: SparkSession,
      table: Path,
      listed: IndexedSeq[AddFile],
      constants: StructType,
      conf: => Configuration,
      changedRows: AddFile => UTF8String = _ => null
  ): Array[InputPartition] = {
    val files = listed.map(f => if (FileMetadata.isSizeKnown(f)) f else sized(table, f, conf))
    val openCostBytes = spark.sessionState.conf.filesOpenCostInBytes
    val maxSplitBytes =
      FilePartition.maxSplitBytes(spark, files.iterator.map(_.sizeBytes + openCostBytes).sum)
    val zone = sessionZone(spark)
    val splits = listed.lazyZip(files).flatMap { (asListed, file) =>
      val row = constantRow(table, asListed, constants, zone, changedRows)
      split(SparkPath.fromPath(LogPath.toAbsolute(table, file.path)), file, row, maxSplitBytes)
    }
    val slots = SessionInternals.leafParallelism(spark)
    TaskPacking(openCostBytes, slots, spark.sessionState.conf.filesMaxPartitionNum)
      .pack(splits, FilePartition.getFilePartitions(spark, _, maxSplitBytes).size)
      .toArray[InputPartition]
  }

  /**
   * Cuts one file into consecutive splits.
   *
   * @param constants the columns whose value is the same for each row of the file
   */
  def ofFile(
      table: Path,
      file: AddFile,
      constants: StructType,
      zone: ZoneId,
      maxSplitBytes: Long,
      conf: => Configuration
  ): Seq[PartitionedFile] = {
    val known = if (FileMetadata.isSizeKnown(file)) file else sized(table, file, conf)
    val row = constantRow(table, file, constants, zone, _ => null)
    split(SparkPath.fromPath(LogPath.toAbsolute(table, file.path)), known, row, maxSplitBytes)
  }

  def sessionZone(spark: SparkSession): ZoneId =
    DateTimeUtils.getZoneId(spark.sessionState.conf.sessionLocalTimeZone)

  /**
   * The file with its size from the file system, if the log has none. If the file is missing, the reader reports it.
   */
  private def sized(table: Path, file: AddFile, conf: Configuration): AddFile = {
    val path = LogPath.toAbsolute(table, file.path)
    val sizeBytes =
      try path.getFileSystem(conf).getFileStatus(path).getLen
      catch { case _: FileNotFoundException => 1L }
    file.copy(sizeBytes = sizeBytes.max(1L))
  }

  private def split(
      path: SparkPath,
      file: AddFile,
      constants: InternalRow,
      maxSplitBytes: Long
  ): Seq[PartitionedFile] =
    (0L until file.sizeBytes by maxSplitBytes).map { start =>
      PartitionedFile(
        partitionValues = constants,
        filePath = path,
        start = start,
        length = maxSplitBytes.min(file.sizeBytes - start),
        modificationTime = file.modificationTimeMs,
        fileSize = file.sizeBytes
      )
    }

  private def constantRow(
      table: Path,
      file: AddFile,
      constants: StructType,
      zone: ZoneId,
      changedRows: AddFile => UTF8String
  ): InternalRow =
    new GenericInternalRow(
      constants.fields.map(constantValue(table, file, _, zone, changedRows))
    )

  private def constantValue(
      table: Path,
      file: AddFile,
      field: StructField,
      zone: ZoneId,
      changedRows: AddFile => UTF8String
  ): Any = {
    def tracked(value: Option[Long], name: String): Long =
      value.getOrElse(throw untracked(table, file, name))
    field.name match {
      case ScanColumns.FilePath => UTF8String.fromString(file.path)
      case ScanColumns.DeletionVector => DeletionVectorConstant.encode(file)
      case ScanColumns.ChangedRows => changedRows(file)
      case ScanColumns.BaseRowId => tracked(file.baseRowId, "baseRowId")
      case ScanColumns.DefaultRowCommitVersion =>
        tracked(file.defaultRowCommitVersion, "defaultRowCommitVersion")
      case column =>
        val string = file.partitionValues.getOrElse(column, null)
        PartitionValues.fromLog(column, field.dataType, string, zone)
    }
  }

  /** Where row tracking is enabled, every file has both (Protocol § Row IDs, § Row Commit Versions). */
  private def untracked(table: Path, file: AddFile, field: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_ROW_TRACKING_INCOMPLETE",
      Map("table" -> table.toString, "file" -> file.path, "field" -> field)
    )
}
