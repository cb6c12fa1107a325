package io.deltaic.spark.scan

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
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
import org.apache.spark.sql.deltaic.{
  FieldIdReaderFactory,
  FileInspection,
  ParquetScanShims,
  ParquetSplits,
  ScanConfiguration,
  SchemaShims
}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.spark.SessionSettings

/**
 * Reads the selected files of a table with Spark's own vectorized Parquet reader.
 *
 * A scan does not filter deleted rows itself: [[DeletionVectorStrategy]] replaces it by
 * [[withDeletionVectors]] under a filter on [[IsDeleted]]. A scan that would need that and did not
 * get it refuses to plan its partitions, so that no path through Spark returns a deleted row.
 *
 * @param requiredColumns what the query asks for: table columns (nested ones pruned) and row ids
 * @param filters predicates that hold for every row the query wants; used to skip, never to drop rows
 * @param fileFilters the same of predicates on `_metadata` that [[FileMetadata]] can decide for a file
 * @param streams what reads the table as a stream, given the directory where it may keep something
 * @param isChanged whether the statement changes the table: then files are left out whatever their number and size, since another
 *   commit may change them at the same time
 * @param mayLackColumns whether files that have none of the columns are read as nulls, and not refused
 */
private[spark] final class TableScan(
    spark: SparkSession,
    val files: FileSource,
    val schema: TableSchema,
    private val requiredColumns: StructType,
    val filters: Seq[Expression],
    private val fileFilters: Seq[Expression],
    private val options: CaseInsensitiveStringMap,
    streams: Option[String => MicroBatchStream] = None,
    val isChanged: Boolean = false,
    mayLackColumns: Boolean = false
) extends Scan
    with Batch
    with ScanOfLiveRows
    with SupportsReportStatistics
    with SupportsRuntimeV2Filtering {

  def table: Path = files.table

  def version: Long = files.version

  private val (computedColumns, tableColumns) = requiredColumns.fields.toSeq.partition(isComputed)
  private val (constantColumns, dataColumns) = tableColumns.partition(isConstant)

  /** Chosen on first use, which is after the optimizer is done with push-down. */
  lazy val selectedFiles: IndexedSeq[AddFile] = files.select(fileSelectionFilters, fileFilters)

  private lazy val fileSelectionFilters: Seq[Expression] =
    new GeneratedPartitions(spark, schema).implied(filters) match {
      case Nil => filters // the very same: its selection is kept
      case implied => filters ++ implied
    }

  /** The Hadoop configuration that readers and deletion vectors need in the executors. */
  private lazy val configuration: Broadcast[SerializableConfiguration] =
    ScanConfiguration.broadcast(spark, options, SessionSettings.LastCommitVersion)

  def hadoopConf: Configuration = configuration.value.value

  lazy val deletionVectors: DeletionVectorSource =
    DeletionVectorSource(files.table.toString)(configuration)

  private def carriesDeletionVectors: Boolean =
    constantColumns.exists(_.name == ScanColumns.DeletionVector)

  override lazy val needsDeletionVectorFilter: Boolean =
    !carriesDeletionVectors && selectedFiles.exists(_.deletionVector.isDefined)

  override def rowFilterColumn: String = ScanColumns.DeletionVector

  override def rowProbes: RowProbeSource = deletionVectors

  /** One and the same, so that plans of several phases have equal scans. */
  override lazy val withDeletionVectors: TableScan = {
    val rowIndex =
      if (requiredColumns.fieldNames.contains(ScanColumns.RowIndex)) Nil
      else Seq(ScanColumns.rowIndexField)
    val columns = StructType(requiredColumns.fields ++ rowIndex :+ ScanColumns.deletionVectorField)
    reading(selectedFiles, columns)
  }

  /**
   * The files of which every row is wanted, as the log proves, and a scan of the others.
   *
   * @param conditions what the query asks of rows besides `filters`
   */
  def splitOffWhole(conditions: Seq[Expression]): (WholeFiles, TableScan) = {
    val (whole, others) =
      files.split(fileSelectionFilters, fileFilters, filters ++ conditions)
    (whole, reading(others, requiredColumns))
  }

  private def reading(some: IndexedSeq[AddFile], columns: StructType): TableScan =
    copied(new SelectedFiles(files, some), columns, None)

  /** A scan of the same rows that reads the columns of all of these scans. */
  def withColumnsOf(scans: Seq[TableScan]): TableScan =
    copied(files, StructType(scans.flatMap(_.requiredColumns.fields).distinctBy(_.name)), streams)

  private def copied(
      files: FileSource,
      columns: StructType,
      streams: Option[String => MicroBatchStream]
  ): TableScan = new TableScan(
    spark,
    files,
    schema,
    columns,
    filters,
    fileFilters,
    options,
    streams,
    isChanged,
    mayLackColumns
  )

  private val columns = StructType(dataColumns ++ computedColumns ++ constantColumns)

  override def readSchema(): StructType = columns

  override def toBatch: Batch = runtimeFiltering.take().fold[Batch](this) { predicates =>
    val zone = FileSplits.sessionZone(spark)
    new FilteredBatch(this, runtimeFiltering.prune(selectedFiles, files.known, predicates, zone))
  }

  @volatile private var isStreamed = false

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    isStreamed = true
    streams.fold(super.toMicroBatchStream(checkpointLocation))(_(checkpointLocation))
  }

  private lazy val runtimeFiltering = new RuntimeFiltering(schema, readSchema())

  /** The columns by whose values, once they are known, files can be left out. */
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
        JoinPruning.telling(skippable, files.known, selectedFiles, schema.skipping, zone)
      }
    offered.map(column => SchemaShims.reference(column.name)).toArray
  }

  private lazy val selectedBytes: Long = selectedFiles.iterator.map(_.sizeBytes).sum

  override def filter(predicates: Array[Predicate]): Unit =
    runtimeFiltering.push(predicates.toSeq)

  /** Fixed up front: asking the reader factory would enumerate files during planning. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (isColumnar) Scan.ColumnarSupportMode.SUPPORTED else Scan.ColumnarSupportMode.UNSUPPORTED

  override def planInputPartitions(): Array[InputPartition] = planInputPartitions(selectedFiles)

  /** @param files all that were selected, or those that are left of them at run time */
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
    FileSplits.plan(spark, this.files.table, files, fileConstants, hadoopConf)
  }

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
      ParquetScanShims.sourceFilters(ParquetPredicates.of(filters, schema)).toArray,
      ParquetScanShims.parquetOptions(spark, options),
      if (mayLackColumns) FileInspection.None
      else ExpectedColumns.of(table.toString, version, schema, dataColumns)
    )
    val readers = new TableReaderFactory(
      table.toString,
      version,
      splits,
      layout,
      isVectorized,
      isColumnar,
      Option.when(carriesDeletionVectors)(deletionVectors)
    )
    if (schema.mapping == ColumnMapping.ById) new FieldIdReaderFactory(readers) else readers
  }

  /**
   * Sizes the relation by the share of its columns that is read, as file sources of Spark do. What is in a
   * batch of a stream has nothing to do with what is in the table.
   */
  override def estimateStatistics(): Statistics =
    if (isStreamed) TableStatistics.unknown else ofSelectedFiles

  /** Spark asks for them again for each copy of a plan. */
  private lazy val ofSelectedFiles: Statistics = {
    val fullRowBytes = schema.all.defaultSize.max(1)
    val share = (readSchema().defaultSize.toDouble / fullRowBytes).min(1.0)
    val sizeBytes = (selectedBytes * share).toLong.max(1L)
    val known =
      if (TableStatistics.areCheap(selectedFiles.size, spark.sessionState.conf.cboEnabled))
        files.rows(fileSelectionFilters, fileFilters)
      else None
    new TableStatistics(sizeBytes, known, schema, readSchema())
  }

  override def description(): String = told

  private lazy val told: String =
    s"deltaic ${files.table} version ${files.version}, ${readSchema().simpleString}, " +
      s"filters: ${(filters ++ fileFilters).mkString("[", ", ", "]")}"

  override def equals(other: Any): Boolean = other match {
    case that: TableScan =>
      (this eq that) || (hash == that.hash && columns == that.columns && selection == that.selection)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = (selection, columns).hashCode()

  /** Which rows the scan reads, whichever columns of them. */
  lazy val selection: ScanSelection = ScanSelection(
    files,
    new ComparedFilters(filters),
    new ComparedFilters(fileFilters),
    options
  )

  private def isComputed(field: StructField): Boolean =
    field.name == ScanColumns.RowIndex || ScanColumns.tracked.fieldNames.contains(field.name) ||
    FileMetadata.isMetadata(field.name, schema)

  private def isConstant(field: StructField): Boolean =
    schema.isPartition(field.name) || ScanColumns.isFileConstant(field.name)

  private def inLog(constant: StructField): StructField =
    if (schema.isPartition(constant.name)) constant.copy(name = schema.logName(constant.name))
    else constant

  /** What the data files are asked for, by the names in the files. */
  private def physicalColumns: StructType = StructType(dataColumns.map(schema.inFiles))

  /** What a split has to bring along, by the names under which the log keeps partition values. */
  def fileConstants: StructType = StructType(layout.fileConstants.map(inLog))

  private lazy val layout: ScanLayout =
    ScanLayout.of(
      dataColumns,
      physicalColumns,
      computedColumns,
      constantColumns,
      schema.rowTracking
    )

  /** In batches positions cost nothing; a reader of rows has to be asked for them. */
  private def storedColumns: StructType =
    if (isVectorized) layout.stored else layout.storedWithPositions

  private def isVectorized: Boolean = ParquetScanShims.supportsBatches(spark, layout.stored)

  private def isColumnar: Boolean =
    isVectorized && ParquetScanShims.wantsBatches(spark, readSchema())
}

/** What decides which rows a scan reads: equal for scans of the same rows. */
private[spark] final case class ScanSelection(
    files: FileSource,
    filters: ComparedFilters,
    fileFilters: ComparedFilters,
    options: CaseInsensitiveStringMap
)
