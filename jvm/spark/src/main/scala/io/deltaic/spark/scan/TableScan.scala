package io.deltaic.spark.scan

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.read.{
  Batch,
  InputPartition,
  PartitionReaderFactory,
  Scan,
  Statistics,
  SupportsReportStatistics,
  SupportsRuntimeV2Filtering
}
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.deltaic.scan.{
  FieldIdReaderFactory,
  FileInspection,
  ParquetScanInternals,
  ParquetSplits,
  ScanConfiguration
}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.spark.metrics.ScanMetrics
import io.deltaic.spark.scan.deletionvectors.{DeletionVectorSource, RowProbeSource, ScanOfLiveRows}
import io.deltaic.spark.scan.files.{
  FileSource,
  FileSplits,
  FullyDeletedFiles,
  ScanFilters,
  Selected,
  SelectedFiles
}
import io.deltaic.spark.scan.vectorized.{ScanLayout, TableReaderFactory}
import io.deltaic.spark.schema.{ColumnMapping, FileMetadata, ScanColumns, TableSchema}
import io.deltaic.spark.util.SessionSettings

/**
 * Reads the selected files of a table with Spark's own vectorized Parquet reader.
 *
 * A scan does not filter deleted rows itself: [[DeletionVectorStrategy]] replaces it by
 * [[withDeletionVectors]] under a filter on [[IsDeleted]]. A scan that needs the filter and lacks
 * it fails when it plans its partitions, so that no path through Spark returns a deleted row.
 *
 * @param requiredColumns the requested columns: table columns (nested ones pruned) and row IDs
 */
private[spark] final class TableScan(
    spark: SparkSession,
    val files: FileSource,
    val schema: TableSchema,
    private val requiredColumns: StructType,
    pushed: ScanFilters,
    options: CaseInsensitiveStringMap,
    context: ScanContext = ScanContext()
) extends Scan
    with Batch
    with ScanOfLiveRows
    with SupportsReportStatistics
    with SupportsRuntimeV2Filtering {

  def table: Path = files.table

  def version: Long = files.version

  /** Predicates that are true for every row of the result. */
  def filters: Seq[Expression] = pushed.ofRows

  def isChanged: Boolean = context.isChanged

  private val (computedColumns, tableColumns) = requiredColumns.fields.toSeq.partition(isComputed)
  private val (constantColumns, dataColumns) = tableColumns.partition(isConstant)

  /** Selected on first use, which is after the optimizer has pushed down filters. */
  lazy val selectedFiles: IndexedSeq[AddFile] = selected.files

  private lazy val selected: Selected = files.selected(selectionFilters)

  private lazy val selectionFilters: ScanFilters =
    new GeneratedPartitions(spark, schema).implied(filters) match {
      case Nil => pushed // the same object: its selection is cached
      case implied => pushed.copy(ofRows = filters ++ implied)
    }

  /** The Hadoop configuration that readers and deletion vectors need in the executors. */
  private lazy val configuration: Broadcast[SerializableConfiguration] =
    ScanConfiguration.broadcast(spark, options, SessionSettings.LastCommitVersion)

  def hadoopConf: Configuration = configuration.value.value

  lazy val deletionVectors: DeletionVectorSource =
    DeletionVectorSource(files.table.toString)(configuration, Some(version))

  private def carriesDeletionVectors: Boolean =
    constantColumns.exists(_.name == ScanColumns.DeletionVector)

  override lazy val needsDeletionVectorFilter: Boolean =
    !carriesDeletionVectors && selectedFiles.exists(_.deletionVector.isDefined)

  override def rowFilterColumn: String = ScanColumns.DeletionVector

  override def rowProbes: RowProbeSource = deletionVectors

  /** Always the same object, so that plans of several phases have equal scans. */
  override lazy val withDeletionVectors: TableScan = {
    val rowIndex =
      if (requiredColumns.fieldNames.contains(ScanColumns.RowIndex)) Nil
      else Seq(ScanColumns.rowIndexField)
    val columns = StructType(requiredColumns.fields ++ rowIndex :+ ScanColumns.deletionVectorField)
    reading(selectedFiles, columns)
  }

  /**
   * The files of which every row matches, as the log proves, and a scan of the other files.
   *
   * @param conditions the query's conditions on rows besides `filters`
   */
  def splitOffFullyDeleted(conditions: Seq[Expression]): (FullyDeletedFiles, TableScan) = {
    val (fullyDeleted, others) = files.split(selectionFilters, filters ++ conditions)
    (fullyDeleted, reading(others, requiredColumns))
  }

  private def reading(some: IndexedSeq[AddFile], columns: StructType): TableScan =
    copied(
      new SelectedFiles(files, some, () => selected.skipped()),
      columns,
      context.copy(streams = None)
    )

  /** A scan of the same rows that reads the columns of all of these scans. */
  def withColumnsOf(scans: Seq[TableScan]): TableScan =
    copied(files, StructType(scans.flatMap(_.requiredColumns.fields).distinctBy(_.name)), context)

  private def copied(files: FileSource, columns: StructType, context: ScanContext): TableScan =
    new TableScan(spark, files, schema, columns, pushed, options, context)

  private val columns = StructType(dataColumns ++ computedColumns ++ constantColumns)

  override def readSchema(): StructType = columns

  override def toBatch: Batch = runtimeFiltering.take().fold[Batch](this) { predicates =>
    val zone = FileSplits.sessionZone(spark)
    val left = runtimeFiltering.prune(selectedFiles, files.filesInMemory, predicates, zone)
    new FilteredBatch(this, left)
  }

  @volatile private var isStreamed = false

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    isStreamed = true
    context.streams.fold(super.toMicroBatchStream(checkpointLocation))(_(checkpointLocation))
  }

  private lazy val runtimeFiltering = new RuntimeFiltering(schema, readSchema())

  /** The columns whose values, once available, can be used to skip files. */
  lazy val skippableColumns: Set[String] = runtimeFiltering.columns.map(_.name).toSet

  /** The columns for which Spark may plan a subquery to find their values: see [[JoinPruning]]. */
  override def filterAttributes(): Array[NamedReference] = offeredColumns.clone()

  private lazy val offeredColumns: Array[NamedReference] = {
    val skippable = runtimeFiltering.columns
    val offered =
      if (isChanged || skippable.isEmpty) skippable
      else if (!JoinPruning.of(spark).pays(selectedFiles.size.toLong, selectedBytes)) Nil
      else {
        val zone = FileSplits.sessionZone(spark)
        JoinPruning.selective(skippable, files.filesInMemory, selectedFiles, schema.skipping, zone)
      }
    offered.map(column => SchemaInternals.reference(column.name)).toArray
  }

  private lazy val selectedBytes: Long = selectedFiles.iterator.map(_.sizeBytes).sum

  override def filter(predicates: Array[Predicate]): Unit =
    runtimeFiltering.push(predicates.toSeq)

  /** Fixed up front: asking the reader factory would enumerate files during planning. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (isColumnar) Scan.ColumnarSupportMode.SUPPORTED else Scan.ColumnarSupportMode.UNSUPPORTED

  override def planInputPartitions(): Array[InputPartition] = planInputPartitions(selectedFiles)

  /** @param files all selected files, or those that runtime filtering has left */
  def planInputPartitions(files: IndexedSeq[AddFile]): Array[InputPartition] = {
    if (needsDeletionVectorFilter)
      throw DeltaicException(
        "DELTAIC_DELETION_VECTOR_FILTER_MISSING",
        Map(
          "table" -> this.files.table.toString,
          "version" -> this.files.version.toString,
          "file" -> selectedFiles.find(_.deletionVector.isDefined).fold("")(_.path)
        )
      )
    filesRead = Some(files)
    FileSplits.plan(spark, this.files.table, files, fileConstants, hadoopConf)
  }

  /**
   * The files of the last execution, which runtime filters may have reduced. Spark asks the scan for its metrics, and not
   * the batch: of two executions of one scan in a plan with different filters, both show the last one's.
   */
  @volatile private var filesRead = Option.empty[IndexedSeq[AddFile]]

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.all

  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    filesRead.fold(Array.empty[CustomTaskMetric])(ScanMetrics.values(
      _,
      selectedFiles,
      selected.skipped()
    ))

  override def createReaderFactory(): PartitionReaderFactory = {
    val splits = new ParquetSplits(
      spark.sessionState.conf,
      ScanConfiguration.of(
        spark.sessionState.conf,
        configuration,
        storedColumns,
        byFieldId = schema.mapping == ColumnMapping.ById
      ),
      storedColumns,
      ParquetScanInternals.sourceFilters(ParquetPredicates.of(filters, schema)).toArray,
      ParquetScanInternals.parquetOptions(spark, options),
      if (context.mayLackColumns) FileInspection.None
      else ExpectedColumns.of(table.toString, version, schema, dataColumns)
    )
    val readers = new TableReaderFactory(
      table.toString,
      version,
      splits,
      layout,
      isVectorized,
      isColumnar,
      Option.when(carriesDeletionVectors)(deletionVectors),
      Some(configuration),
      isStreaming = context.isStreaming
    )
    if (schema.mapping == ColumnMapping.ById) new FieldIdReaderFactory(readers) else readers
  }

  /**
   * Sizes the relation by the share of its columns that is read, as file sources of Spark do. The
   * size of a micro-batch is unrelated to the size of the table.
   */
  override def estimateStatistics(): Statistics =
    if (isStreamed) TableStatistics.unknown else ofSelectedFiles

  /** Spark asks for them again for each copy of a plan. */
  private lazy val ofSelectedFiles: Statistics = {
    val fullRowBytes = schema.all.defaultSize.max(1)
    val share = (readSchema().defaultSize.toDouble / fullRowBytes).min(1.0)
    val sizeBytes = (selectedBytes * share).toLong.max(1L)
    val rowStatistics =
      if (TableStatistics.areCheap(selectedFiles.size, spark.sessionState.conf.cboEnabled))
        files.rows(selectionFilters)
      else None
    new TableStatistics(sizeBytes, rowStatistics, schema, readSchema())
  }

  override def description(): String = describedAs

  private lazy val describedAs: String =
    s"deltaic ${files.table} version ${files.version}, ${readSchema().simpleString}, " +
      s"filters: ${pushed.all.mkString("[", ", ", "]")}"

  override def equals(other: Any): Boolean = other match {
    case that: TableScan =>
      (this eq that) || (hash == that.hash && columns == that.columns && selection == that.selection)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = (selection, columns).hashCode()

  /** Which rows the scan reads, regardless of columns. */
  lazy val selection: ScanSelection = ScanSelection(
    files,
    new ComparedFilters(pushed.ofRows),
    new ComparedFilters(pushed.ofFiles),
    options
  )

  private def isComputed(field: StructField): Boolean =
    field.name == ScanColumns.RowIndex || ScanColumns.rowTracking.fieldNames.contains(field.name) ||
    FileMetadata.isMetadata(field.name, schema)

  private def isConstant(field: StructField): Boolean =
    schema.isPartition(field.name) || ScanColumns.isFileConstant(field.name)

  private def inLog(constant: StructField): StructField =
    if (schema.isPartition(constant.name)) constant.copy(name = schema.logName(constant.name))
    else constant

  /** The columns to read from the data files, under their physical names. */
  private def physicalColumns: StructType = StructType(dataColumns.map(schema.inFiles))

  /** The constants that a split provides, under the names of partition values in the log. */
  def fileConstants: StructType = StructType(layout.fileConstants.map(inLog))

  private lazy val layout: ScanLayout =
    ScanLayout.of(
      dataColumns,
      physicalColumns,
      computedColumns,
      constantColumns,
      schema.rowTracking
    )

  /** Positions are free in batches; the row-based reader must be asked for them. */
  private def storedColumns: StructType =
    if (isVectorized) layout.stored else layout.storedWithPositions

  private def isVectorized: Boolean = ParquetScanInternals.supportsBatches(spark, layout.stored)

  private def isColumnar: Boolean =
    isVectorized && ParquetScanInternals.wantsBatches(spark, readSchema())
}

/**
 * What a scan takes from its statement.
 *
 * @param streams creates the stream that reads the table, given its checkpoint directory
 * @param isChanged whether the statement changes the table: then files are skipped whatever their
 *   number and size, since a concurrent commit may change them
 * @param mayLackColumns whether files that have none of the columns are read as nulls instead of rejected
 * @param isStreaming whether it reads a batch of a stream
 */
private[spark] final case class ScanContext(
    streams: Option[String => MicroBatchStream] = None,
    isChanged: Boolean = false,
    mayLackColumns: Boolean = false,
    isStreaming: Boolean = false
)

/** What determines which rows a scan reads: equal for scans of the same rows. */
private[spark] final case class ScanSelection(
    files: FileSource,
    filters: ComparedFilters,
    fileFilters: ComparedFilters,
    options: CaseInsensitiveStringMap
)
