package io.deltaic.spark.changes

import java.util.OptionalLong

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.scan.deletionvectors.ScanOfLiveRows
import io.deltaic.spark.scan.files.{FileSplits, ListedFiles, ScanFilters}
import io.deltaic.spark.scan.{ComparedFilters, ScanContext, TableScan}
import io.deltaic.spark.schema.{ScanColumns, TableSchema}
import io.deltaic.spark.util.UnsupportedOperation

/**
 * Reads the files of a feed as a table's scan does, in one scan for all commits.
 *
 * Change data files contain the change type, data files do not: for them it is a constant. Columns
 * by which the table was partitioned when a file was written are constants too, even if the
 * partitioning differs in other versions. So there may be several readers, which produce the same
 * columns.
 *
 * @param schema the columns of the table
 * @param requiredColumns the requested columns
 * @param filters predicates that are true for every row of the result
 */
private[spark] final class ChangesScan(
    spark: SparkSession,
    private val feed: ChangeSource,
    schema: TableSchema,
    requiredColumns: StructType,
    private val filters: Seq[Expression],
    private val options: CaseInsensitiveStringMap,
    use: ChangesUse = ChangesUse()
) extends Scan
    with Batch
    with ScanOfLiveRows
    with SupportsReportStatistics {
  import ChangesScan.Kind

  private val (constants, stored) =
    requiredColumns.fields.toSeq
      .filterNot(_.name == ChangeColumns.ChangeType)
      .partition(isConstant)
  private val changeType = requiredColumns.fields.find(_.name == ChangeColumns.ChangeType)

  /** At least one, so that there always is a reader. */
  private lazy val parts: IndexedSeq[Part] = {
    val usual = Kind(isRecorded = false, schema.partitionColumns)
    val ofKind = feed.changes.groupBy(c => kindOf(c.change))
    val kinds = usual +: feed.changes.map(c => kindOf(c.change)).distinct.filter(_ != usual)
    kinds.map(kind => new Part(kind, ofKind.getOrElse(kind, Vector.empty)))
  }

  private val columns = StructType(stored ++ changeType ++ constants)

  override def readSchema(): StructType = columns

  override def toBatch: Batch = use.failure.fold[Batch](this)(throw _)

  /** The batches of a stream are other scans, whose range is not that of this one. */
  @volatile private var isStreamed = false

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    isStreamed = true
    use.stream(checkpointLocation).getOrElse(
      throw UnsupportedOperation(feed.table.toString, "a stream of these changes")
    )
  }

  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (parts.forall(_.isColumnar)) Scan.ColumnarSupportMode.SUPPORTED
    else Scan.ColumnarSupportMode.UNSUPPORTED

  override def needsDeletionVectorFilter: Boolean =
    !carriesUnchangedRows && parts.exists(_.selected.needRowFilter)

  override lazy val withDeletionVectors: ChangesScan = new ChangesScan(
    spark,
    feed,
    schema,
    StructType(
      requiredColumns.fields :+ ScanColumns.rowIndexField :+ ScanColumns.changedRowsField
    ),
    filters,
    options,
    use
  )

  override def rowFilterColumn: String = ScanColumns.ChangedRows

  override lazy val rowProbes: ChangedRows = ChangedRows(parts.head.reader.deletionVectors)

  override def planInputPartitions(): Array[InputPartition] = {
    if (needsDeletionVectorFilter)
      throw DeltaicException(
        "DELTAIC_DELETION_VECTOR_FILTER_MISSING",
        Map(
          "table" -> feed.table.toString,
          "version" -> feed.version.toString,
          "file" -> parts.flatMap(_.selected.filteredFile).headOption.getOrElse("")
        )
      )
    parts.zipWithIndex.toArray.flatMap { case (part, i) =>
      part.partitions.map[InputPartition](ChangesPartition(_, i))
    }
  }

  override def createReaderFactory(): PartitionReaderFactory =
    new ChangesReaderFactory(
      parts.map(part => ChangesReader(part.columns, part.unchangedRows)),
      rowProbes
    )

  override def estimateStatistics(): Statistics = {
    def bytes: Long = {
      val fileBytes = parts.flatMap(_.selected.files).map(_.sizeBytes).sum
      val fullRowBytes = parts.head.schema.all.defaultSize.max(1)
      val share = (readSchema().defaultSize.toDouble / fullRowBytes).min(1.0)
      (fileBytes * share).toLong.max(1L)
    }
    val size = if (isStreamed) OptionalLong.empty() else OptionalLong.of(bytes)
    new Statistics {
      override def sizeInBytes(): OptionalLong = size
      override def numRows(): OptionalLong = OptionalLong.empty()
    }
  }

  override def description(): String =
    s"deltaic $feed, ${readSchema().simpleString}, filters: ${filters.mkString("[", ", ", "]")}"

  override def equals(other: Any): Boolean = other match {
    case that: ChangesScan =>
      (this eq that) || (hash == that.hash && feed == that.feed && columns == that.columns &&
      options == that.options && comparedFilters == that.comparedFilters)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = (feed, columns, comparedFilters).hashCode()

  private lazy val comparedFilters = new ComparedFilters(filters)

  private def carriesUnchangedRows: Boolean = constants.exists(_.name == ScanColumns.ChangedRows)

  private def isConstant(field: StructField): Boolean =
    schema.isPartition(field.name) || ScanColumns.isFileConstant(field.name) ||
    field.name == ChangeColumns.CommitVersion || field.name == ChangeColumns.CommitTimestamp

  private def kindOf(change: FileChange): Kind = {
    val inLog = change.file.partitionValues
    Kind(
      change.changeType.isEmpty,
      logNames.collect { case (column, name) if inLog.contains(name) => column }
    )
  }

  /** The logical name and log name of each column, partition columns first. */
  private lazy val logNames: Seq[(String, String)] = {
    val others = schema.stored.fieldNames.filterNot(schema.isPartition)
    (schema.partitionColumns ++ others).map(column => column -> schema.logName(column))
  }

  /** The files of one kind and their reader. */
  private final class Part(kind: Kind, changes: IndexedSeq[CommittedChange]) {
    val schema: TableSchema = ChangeColumns.constantIn(
      ChangesScan.this.schema.copy(partitionColumns = kind.partitionedBy),
      constantType = !kind.isRecorded
    )

    lazy val selected: ChangeFeedFiles =
      ChangeFeedFiles.select(feed.table, changes, schema, filters, FileSplits.sessionZone(spark))

    /** Its file list is not used, only its reader. */
    lazy val reader: TableScan = new TableScan(
      spark,
      ListedFiles(feed.table, feed.version, Vector.empty),
      schema,
      readSchema(),
      ScanFilters(filters),
      options,
      ScanContext(mayLackColumns = feed.mayLackColumns, isStreaming = feed.isStreaming)
    )

    /** A scan puts constants last, and kinds of files have different constants. */
    def columns: ReorderedColumns = {
      val read = reader.readSchema()
      val wanted = ChangesScan.this.readSchema()
      ReorderedColumns(
        reader.createReaderFactory(),
        wanted,
        wanted.fieldNames.map(read.fieldIndex).toIndexedSeq
      )
    }

    def isColumnar: Boolean =
      reader.columnarSupportMode() == Scan.ColumnarSupportMode.SUPPORTED

    /** The ordinal of the constant that encodes which rows of a file are part of the change. */
    def unchangedRows: Option[Int] = {
      val ordinal = reader.fileConstants.fieldNames.indexOf(ScanColumns.ChangedRows)
      Option.when(ordinal >= 0)(ordinal)
    }

    def partitions: Array[InputPartition] = FileSplits
      .plan(
        spark,
        feed.table,
        selected.files,
        reader.fileConstants,
        reader.hadoopConf,
        selected.unchangedRows
      )
  }
}

/**
 * How a scan of changes may be used.
 *
 * @param stream the same changes as the source of a stream, given its checkpoint directory
 * @param failure why a batch query cannot read them
 */
private[changes] final case class ChangesUse(
    stream: String => Option[MicroBatchStream] = _ => None,
    failure: Option[Throwable] = None
)

private object ChangesScan {

  /**
   * How a file is to be read.
   *
   * @param isRecorded whether it is a change data file, which contains the type of each change
   * @param partitionedBy columns whose value is stored in the log, not in the file
   */
  final case class Kind(isRecorded: Boolean, partitionedBy: Seq[String])
}
