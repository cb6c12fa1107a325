package io.deltaic.spark.changes

import java.util.OptionalLong

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.scan._
import io.deltaic.spark.write.WriteTransaction

/**
 * Reads the files of a feed as a table's scan does, in one scan for all commits.
 *
 * Change data files hold the kind of each change, data files do not: there it is a constant. So
 * there are two readers, which produce the same columns.
 *
 * @param schema the columns of the table
 * @param requiredColumns what the query asks for
 * @param filters predicates that hold for every row the query wants
 */
private[spark] final class ChangesScan(
    spark: SparkSession,
    private val feed: ChangeSource,
    schema: TableSchema,
    requiredColumns: StructType,
    private val filters: Seq[Expression],
    private val options: CaseInsensitiveStringMap
) extends Scan
    with Batch
    with ScanOfLiveRows
    with SupportsReportStatistics {

  private val (constants, stored) =
    requiredColumns.fields.toSeq
      .filterNot(_.name == ChangeColumns.ChangeType)
      .partition(isConstant)
  private val changeType = requiredColumns.fields.find(_.name == ChangeColumns.ChangeType)

  private lazy val inferred = new Part(isRecorded = false)
  private lazy val recorded = new Part(isRecorded = true)

  override def readSchema(): StructType = StructType(stored ++ changeType ++ constants)

  override def toBatch: Batch = this

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
    throw WriteTransaction.unsupported(feed.table.toString, "a stream of the table's changes")

  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    inferred.reader.columnarSupportMode()

  override def needsDeletionVectorFilter: Boolean =
    !carriesUnchangedRows && inferred.selected.needRowFilter

  override def withDeletionVectors: ChangesScan = new ChangesScan(
    spark,
    feed,
    schema,
    StructType(
      requiredColumns.fields :+ ScanColumns.rowIndexField :+ ScanColumns.changedRowsField
    ),
    filters,
    options
  )

  override def rowFilterColumn: String = ScanColumns.ChangedRows

  override lazy val rowProbes: ChangedRows = ChangedRows(inferred.reader.deletionVectors)

  override def planInputPartitions(): Array[InputPartition] = {
    if (needsDeletionVectorFilter)
      throw new DeltaicException(
        "DELTAIC_DELETION_VECTOR_FILTER_MISSING",
        Map(
          "table" -> feed.table.toString,
          "version" -> feed.version.toString,
          "file" -> inferred.selected.files
            .find(inferred.selected.unchangedRows(_) != null)
            .fold("")(_.path)
        )
      )
    inferred.partitions ++ recorded.partitions
  }

  override def createReaderFactory(): PartitionReaderFactory = {
    val vectorOrdinal = inferred.reader.fileConstants.fieldNames.indexOf(ScanColumns.ChangedRows)
    new ChangesReaderFactory(
      inferred.columns,
      recorded.columns,
      Option.when(vectorOrdinal >= 0)((rowProbes, vectorOrdinal))
    )
  }

  override def estimateStatistics(): Statistics = {
    val fileBytes = Seq(inferred, recorded).flatMap(_.selected.files).map(_.sizeBytes).sum
    val fullRowBytes = inferred.schema.all.defaultSize.max(1)
    val share = (readSchema().defaultSize.toDouble / fullRowBytes).min(1.0)
    new Statistics {
      override def sizeInBytes(): OptionalLong =
        OptionalLong.of((fileBytes * share).toLong.max(1L))
      override def numRows(): OptionalLong = OptionalLong.empty()
    }
  }

  override def description(): String =
    s"deltaic $feed, ${readSchema().simpleString}, filters: ${filters.mkString("[", ", ", "]")}"

  override def equals(other: Any): Boolean = other match {
    case that: ChangesScan =>
      feed == that.feed && readSchema() == that.readSchema() && options == that.options &&
      TableScan.sameFilters(filters, that.filters)
    case _ => false
  }

  override def hashCode(): Int = (feed, readSchema()).hashCode()

  private def carriesUnchangedRows: Boolean = constants.exists(_.name == ScanColumns.ChangedRows)

  private def isConstant(field: StructField): Boolean =
    schema.isPartition(field.name) || ScanColumns.isFileConstant(field.name) ||
    field.name == ChangeColumns.CommitVersion || field.name == ChangeColumns.CommitTimestamp

  /** The files of one kind and what reads them. */
  private final class Part(val isRecorded: Boolean) {
    val schema: TableSchema =
      ChangeColumns.constantIn(ChangesScan.this.schema, constantType = !isRecorded)

    lazy val selected: ChangedFiles = ChangedFiles.select(
      feed.table,
      feed.changes.filter(_.change.changeType.isEmpty == isRecorded),
      schema,
      filters,
      FileSplits.sessionZone(spark)
    )

    /** Not asked for its files: it is only the reader that matters. */
    lazy val reader: TableScan = new TableScan(
      spark,
      ListedFiles(feed.table, feed.version, Vector.empty),
      schema,
      readSchema(),
      filters,
      Nil,
      options
    )

    /** A scan puts constants last, and what is constant differs. */
    def columns: ReorderedColumns = {
      val read = reader.readSchema()
      val wanted = ChangesScan.this.readSchema()
      ReorderedColumns(
        reader.createReaderFactory(),
        wanted,
        wanted.fieldNames.map(read.fieldIndex).toIndexedSeq
      )
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
      .map(ChangesPartition(_, isRecorded))
  }
}
