package org.apache.spark.sql.deltaic.scan

import java.time.ZoneId

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, RawLocalFileSystem}
import org.apache.hadoop.mapred.{FileSplit, JobConf}
import org.apache.hadoop.mapreduce._
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.compression.CompressionCodecFactory
import org.apache.parquet.filter2.compat.FilterCompat
import org.apache.parquet.filter2.predicate.{FilterApi, FilterPredicate}
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetInputFormat, ParquetRecordReader}
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation
import org.apache.parquet.schema.MessageType
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec
import org.apache.spark.sql.deltaic.RowPositions
import org.apache.spark.sql.execution.datasources.parquet._
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, PartitionedFile}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._
import org.apache.spark.util.Utils

/** Checks the columns of a file and throws if the file must not be read. */
trait FileInspection extends Serializable {
  def inspect(file: String, content: MessageType): Unit
}

object FileInspection {
  val None: FileInspection = (_, _) => ()
}

/**
 * Opens splits of Parquet files in a task, with Spark's own readers. It does what the factory of
 * Spark's Parquet source does, which gives no access to the vectorized reader.
 *
 * @param configuration for readers of the same columns
 * @param stored the columns to read, as the files name them
 * @param filters used to skip row groups and pages
 * @param inspection is called with the schema of each file before it is read
 */
final class ParquetSplits(
    conf: SQLConf,
    configuration: ScanConfiguration,
    stored: StructType,
    filters: Array[Filter],
    val options: ParquetOptions,
    inspection: FileInspection = FileInspection.None
) extends Serializable {

  private val caseSensitive = conf.caseSensitiveAnalysis
  private val offHeap = conf.offHeapColumnVectorEnabled
  val batchRows: Int =
    if (conf.contains(SQLConf.PARQUET_VECTORIZED_READER_BATCH_SIZE.key))
      conf.parquetVectorizedReaderBatchSize
    else ParquetSplits.rowsOfBatch(stored, conf.parquetVectorizedReaderBatchSize)
  private val recordFilter = conf.parquetRecordFilterEnabled
  private val int96InZone = conf.isParquetINT96TimestampConversion
  private val pushDown = conf.parquetFilterPushDown
  private val pushDownDate = conf.parquetFilterPushDownDate
  private val pushDownTimestamp = conf.parquetFilterPushDownTimestamp
  private val pushDownDecimal = conf.parquetFilterPushDownDecimal
  private val pushDownString = conf.parquetFilterPushDownStringPredicate
  private val pushDownInThreshold = conf.parquetFilterPushDownInFilterThreshold
  private val datetimeRebaseMode = options.datetimeRebaseModeInRead
  private val int96RebaseMode = options.int96RebaseModeInRead

  /**
   * A reader that is ready to return batches of the stored columns.
   *
   * @param decompressors creates the decompressors of one file
   */
  def openBatches(
      split: PartitionedFile,
      positions: Option[RowPositions],
      decompressors: Configuration => CompressionCodecFactory
  ): VectorizedParquetRecordReader = {
    val opened = ParquetFooterReader.openFileAndReadFooter(hadoop, split, true)
    var streamIsOurs = true
    try {
      val file = opened.footer.getFileMetaData
      inspection.inspect(split.urlEncodedPath, file.getSchema)
      val (dates, int96) = (datetimeRebase(file), int96Rebase(file))
      openedOrClosed {
        new VectorizedParquetRecordReader(
          timestampZone(file).orNull,
          dates.mode.toString,
          dates.timeZone,
          int96.mode.toString,
          int96.timeZone,
          offHeap && TaskContext.get() != null,
          batchRows
        )
      } { reader =>
        reader.initialize(
          fileSplit(split),
          new TaskAttemptContextImpl(confRequestingColumns(file), attemptId),
          Some(opened.inputFile),
          Some(opened.inputStream),
          Some(RowGroupInternals.withoutRowGroups(opened.footer))
        )
        streamIsOurs = false
        RowGroupInternals.follow(
          reader,
          rowGroups(split, opened, pushedFilter(file), decompressors)
        )
        reader.initBatch(new StructType, InternalRow.empty)
        reader.enableReturningBatches()
        positions.foreach(RowPositionHook.install(reader, _))
      }
    } finally if (streamIsOurs) Utils.closeQuietly(opened.inputStream)
  }

  /** A reader of rows of the stored columns, for types and settings that have no batches. */
  def openRows(split: PartitionedFile): RecordReader[Void, InternalRow] = {
    val file =
      ParquetFooterReader.openFileAndReadFooter(hadoop, split, false).footer.getFileMetaData
    inspection.inspect(split.urlEncodedPath, file.getSchema)
    val support =
      new ParquetReadSupport(timestampZone(file), false, datetimeRebase(file), int96Rebase(file))
    val pushed = pushedFilter(file)
    openedOrClosed {
      val reader = pushed.filter(_ => recordFilter) match {
        case Some(filter) => new ParquetRecordReader(support, FilterCompat.get(filter, null))
        case None => new ParquetRecordReader(support)
      }
      ParquetRowIndexUtil.addRowIndexToRecordReaderIfNeeded(reader, stored)
    } { reader =>
      // Uses its own configuration, to which the filter of this file is added.
      val attempt = new TaskAttemptContextImpl(new JobConf(job), attemptId)
      pushed.foreach(ParquetInputFormat.setFilterPredicate(attempt.getConfiguration, _))
      reader.initialize(fileSplit(split), attempt)
    }
  }

  private def hadoop: Configuration = configuration.hadoop

  /** A reader that fails to start is closed, and a task that is killed meanwhile waits for that. */
  private def openedOrClosed[R <: RecordReader[Void, _]](make: => R)(start: R => Unit): R =
    Utils.createResourceUninterruptiblyIfInTaskThread {
      Utils.tryInitializeResource(make) { reader =>
        start(reader)
        reader
      }
    }

  private def fileSplit(split: PartitionedFile): FileSplit =
    new FileSplit(split.toPath, split.start, split.length, Array.empty[String])

  /** Created once per task: the context of an attempt copies a configuration that is not a JobConf. */
  @transient private lazy val job = configuration.newJob()

  /**
   * Requests the stored columns. Spark's vectorized reader cannot read bytes as decimals of up to
   * 18 digits; if a file has such columns, all decimals are requested with the maximum precision.
   */
  private def confRequestingColumns(file: FileMetaData): JobConf =
    if (!hasShortDecimals || !ParquetSplits.hasShortDecimalsAsBytes(file)) job
    else {
      val other = new JobConf(job)
      other.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, ParquetSplits.widest(stored).json)
      other
    }

  private val hasShortDecimals = ParquetSplits.widest(stored) != stored

  private def attemptId = new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0)

  /** Reads the row groups of a split that the filter leaves, as Hadoop's configuration says. */
  private def rowGroups(
      split: PartitionedFile,
      opened: OpenedParquetFooter,
      filter: Option[FilterPredicate],
      decompressors: Configuration => CompressionCodecFactory
  ): ParquetFileReader = {
    val codecs = decompressors(hadoop)
    val reading = HadoopReadOptions.builder(job, split.toPath).withCodecFactory(codecs)
    filter.foreach(f => reading.withRecordFilter(FilterCompat.get(f)))
    if (job.get(ParquetSplits.BufferSizeKey) == null)
      reading.withMaxAllocationInBytes(ParquetSplits.BufferBytes)
    if (job.get(ParquetInputFormat.HADOOP_VECTORED_IO_ENABLED) == null && isLocal(split))
      reading.withUseHadoopVectoredIo(false)
    // Filtering row groups by dictionary may decompress some.
    try
      new ParquetFileReader(opened.inputFile, opened.footer, reading.build(), opened.inputStream)
    catch {
      case e: Throwable =>
        codecs.release()
        throw e
    }
  }

  /** Whether vectored reads, which ask for each range as a whole, in one large buffer, save no requests. */
  private def isLocal(split: PartitionedFile): Boolean =
    split.toPath.getFileSystem(hadoop) match {
      case _: LocalFileSystem | _: RawLocalFileSystem => true
      case _ => false
    }

  private def pushedFilter(file: FileMetaData): Option[FilterPredicate] =
    if (!pushDown || filters.isEmpty) None
    else {
      val translator = new ParquetFilters(
        file.getSchema,
        pushDownDate,
        pushDownTimestamp,
        pushDownDecimal,
        pushDownString,
        pushDownInThreshold,
        caseSensitive,
        datetimeRebase(file)
      )
      filters.flatMap(translator.createFilter(_)).reduceOption(FilterApi.and)
    }

  private def datetimeRebase(file: FileMetaData): RebaseSpec =
    DataSourceUtils.datetimeRebaseSpec(file.getKeyValueMetaData.get, datetimeRebaseMode)

  private def int96Rebase(file: FileMetaData): RebaseSpec =
    DataSourceUtils.int96RebaseSpec(file.getKeyValueMetaData.get, int96RebaseMode)

  /** Other writers than parquet-mr are said to store INT96 in UTC (SQLConf's own words). */
  private def timestampZone(file: FileMetaData): Option[ZoneId] =
    if (int96InZone && !Option(file.getCreatedBy).exists(_.startsWith("parquet-mr")))
      Some(DateTimeUtils.getZoneId(job.get(SQLConf.SESSION_LOCAL_TIMEZONE.key)))
    else None
}

object ParquetSplits {

  /** Parquet's setting for the maximum size of one buffer; the constant is private in Parquet. */
  private val BufferSizeKey = "parquet.read.allocation.size"

  /**
   * Less than half of the smallest region of the G1 collector, of 1 MiB. Larger buffers are
   * humongous objects, and each of them may start a concurrent cycle, which takes processors from
   * the tasks.
   */
  private val BufferBytes = 500 * 1024

  private def widest(dataType: DataType): DataType = dataType match {
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS =>
      DecimalType(DecimalType.MAX_PRECISION, d.scale)
    case s: StructType => StructType(s.map(field => field.copy(dataType = widest(field.dataType))))
    case a: ArrayType => a.copy(elementType = widest(a.elementType))
    case m: MapType => m.copy(keyType = widest(m.keyType), valueType = widest(m.valueType))
    case other => other
  }

  private def hasShortDecimalsAsBytes(file: FileMetaData): Boolean =
    file.getSchema.getColumns.asScala.map(_.getPrimitiveType).exists { column =>
      column.getPrimitiveTypeName == PrimitiveTypeName.BINARY &&
      (column.getLogicalTypeAnnotation match {
        case decimal: DecimalLogicalTypeAnnotation =>
          decimal.getPrecision <= Decimal.MAX_LONG_DIGITS
        case _ => false
      })
    }

  /**
   * The maximum size of the columns of one batch, estimated from their types: a batch is decoded
   * column by column and then read row by row, which is faster if it fits into the processor's
   * cache.
   */
  private val BatchBytes = 512 * 1024
  private val FewestRows = 1024

  /** A power of two, so that batches end where pages of a power of two do. */
  def rowsOfBatch(stored: StructType, most: Int): Int = {
    val fitting = BatchBytes / math.max(stored.defaultSize, 1)
    math.min(most, math.max(FewestRows, Integer.highestOneBit(math.max(fitting, 1))))
  }
}
