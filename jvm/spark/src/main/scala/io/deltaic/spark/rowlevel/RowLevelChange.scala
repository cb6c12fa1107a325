package io.deltaic.spark.rowlevel

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference, SortOrder}
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.ReadSet
import io.deltaic.spark.commit.reads.{ReadRecordingWrite, RecordedReads, ScannedRows}
import io.deltaic.spark.metrics.WriteMetrics
import io.deltaic.spark.scan.files.{FileSplits, FullyDeletedFiles, SnapshotFiles}
import io.deltaic.spark.scan.{ScanContext, TableScan, TableScanBuilder}
import io.deltaic.spark.schema.{AnalyzedColumns, ScanColumns, TableSchema}
import io.deltaic.spark.write.{IdempotentWrite, SessionWriteOptions, TableWrite}

/**
 * One DELETE, UPDATE or MERGE, from the snapshot it reads to its commit. Spark plans it; its
 * tasks report the positions of deleted and updated rows, and write the new rows.
 *
 * @param batchWrite receives the reports of tasks and the files removed without being read, given the other scans
 *   of the statement, if the change is a part of another write; without it they are committed
 * @param merge details of a MERGE
 */
private[spark] final class RowLevelChange(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Snapshot,
    override val command: Command,
    batchWrite: Option[(RowLevelChange, RecordedReads, FullyDeletedFiles) => DeltaBatchWrite] =
      None,
    val merge: Option[MergeDetails] = None
) extends SupportsDelta {

  private val schema = TableSchema.of(snapshot)
  private val zone = FileSplits.sessionZone(spark)
  private val scans = ArrayBuffer.empty[TableScan]
  @volatile private var resolvedCondition: Option[Expression] = None

  /** Sets the statement's condition, once it is resolved. */
  def describe(condition: Expression): Unit = resolvedCondition = Some(condition)

  /** The condition of the statement. */
  def condition: Option[Expression] = resolvedCondition

  def partitionColumns: Seq[String] = schema.partitionColumns

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val read = merge.fold(schema)(_.schema())
    new TableScanBuilder(
      spark,
      SnapshotFiles(spark, log, snapshot, read),
      read,
      AnalyzedColumns.without(options),
      ScanContext(isChanged = true),
      scan => synchronized(scans += scan)
    )
  }

  override def newWriteBuilder(info: LogicalWriteInfo): DeltaWriteBuilder = new DeltaWriteBuilder {
    override def build(): DeltaWrite = new ChangeWrite
  }

  /**
   * Requires each task's rows to be sorted by partition, as an append does: a join returns them in
   * any order, and each change of the partition starts another file. Deleted rows go to no partition.
   *
   * @param fullyDeletedFiles files that are removed without being read, if any, and what the statement had read
   *   of the table before they were left out
   */
  private[spark] final class ChangeWrite(fullyDeletedFiles: Option[(
      FullyDeletedFiles,
      RecordedReads
  )] = None)
      extends DeltaWrite with RequiresDistributionAndOrdering
      with ReadRecordingWrite with IdempotentWrite with ReportsAffectedRows {
    @volatile private var batch: Option[RowLevelBatchWrite] = None

    override val log: DeltaLog = RowLevelChange.this.log
    override val readVersion: Long = snapshot.version

    def change: RowLevelChange = RowLevelChange.this

    override def requiredDistribution(): Distribution = Distributions.unspecified()

    override def requiredOrdering(): Array[SortOrder] =
      if (command == Command.DELETE) Array.empty
      else TableWrite.orderedBy(partitionColumns)

    override def toBatch: DeltaBatchWrite = {
      val (fullyDeleted, reads) = fullyDeletedFiles.getOrElse((FullyDeletedFiles.none, recorded))
      batchWrite.fold[DeltaBatchWrite] {
        val own = new RowLevelBatchWrite(change, reads, fullyDeleted)
        batch = Some(own)
        own
      }(_(change, reads, fullyDeleted))
    }

    private def progress: SessionWriteOptions = new SessionWriteOptions(spark, Map.empty)

    /** The session's `txnAppId` and `txnVersion` apply to statements, not to a part of a write with its own. */
    override def isAlreadyCommitted: Boolean =
      batchWrite.isEmpty && progress.isAlreadyCommitted(snapshot)

    override def skip(): Unit = progress.skipped(snapshot.table)

    override def supportedCustomMetrics(): Array[CustomMetric] = WriteMetrics.all

    override def reportDriverMetrics(): Array[CustomTaskMetric] =
      WriteMetrics.values(batch.flatMap(_.committedWrite))

    override def affectedRows: AffectedRowCounts = batch.fold(AffectedRowCounts())(_.affectedRows)

    def hasFullyDeletedFiles: Boolean = fullyDeletedFiles.isDefined

    /** This write for a query that leaves out these files, all of whose rows are deleted. */
    def withFullyDeletedFiles(files: FullyDeletedFiles): ChangeWrite =
      new ChangeWrite(Some((files, recorded)))

    override def description(): String = {
      val files = fullyDeletedFiles.fold("")(w => s", ${w._1.adds.size} files as a whole")
      s"deltaic $command on ${log.table}$files"
    }

    override def toString: String = description()
  }

  override def rowId(): Array[NamedReference] =
    ScanColumns.rowId.map(name => Expressions.column(name): NamedReference).toArray

  /** With row tracking, an update passes the old row's ID to the new row. */
  override def requiredMetadataAttributes(): Array[NamedReference] =
    if (command == Command.DELETE || !keepsRowIds) Array.empty
    else Array(Expressions.column(ScanColumns.TrackedRowId))

  private def keepsRowIds: Boolean = schema.rowTracking.exists(_.materialized.nonEmpty)

  /** An update stays one operation, with the old row's position and the new row. */
  override def representUpdateAsDeleteAndInsert(): Boolean = false

  override def description(): String = command.toString

  /** The files that the scans selected, by their path in the log. */
  lazy val filesRead: Map[String, AddFile] =
    currentScans.iterator.flatMap(_.selectedFiles).map(file => file.path -> file).toMap

  /** Whether a scan is one of the statement's target. */
  def isTarget(scan: TableScan): Boolean = currentScans.exists(_ eq scan)

  /** @param reads all scans of the table in the statement, such as those of subqueries */
  def readSet(reads: RecordedReads): ReadSet = {
    val own = currentScans
    val others = reads.scans.filterNot(scan => own.exists(_ eq scan))
    ReadSet.union(
      new ScannedRows(spark, own, zone, reads.resultPerRow, reads.matches),
      new ScannedRows(spark, others, zone)
    )
  }

  private def currentScans: Seq[TableScan] = synchronized(scans.toList)
}

/**
 * Properties of a MERGE besides the rows it changes.
 *
 * @param parameters the operation parameters for the history
 * @param measured metrics counted while the statement runs
 * @param evolved the table's columns afterwards, if the statement evolves them
 * @param schema the columns to read: old rows have nulls in added columns
 */
private[spark] final class MergeDetails(
    val parameters: Map[String, String],
    val measured: () => Map[String, Long],
    val evolved: Option[StructType],
    val schema: () => TableSchema
)
