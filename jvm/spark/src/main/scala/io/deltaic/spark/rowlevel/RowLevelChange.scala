package io.deltaic.spark.rowlevel

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference, SortOrder}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.bridge.ReadSet
import io.deltaic.spark.scan._
import io.deltaic.spark.write._

/**
 * One DELETE, UPDATE or MERGE, from the snapshot it reads to the commit it makes. Spark plans it; its
 * tasks report positions of rows that end, and write the rows that begin.
 *
 * @param batchWrite takes what they report and the files that end unread, given the other scans of the
 *   statement, where the change is a part of another write; else they become a commit
 * @param merge what there is to know of a MERGE
 */
private[spark] final class RowLevelChange(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Snapshot,
    override val command: Command,
    batchWrite: Option[(RowLevelChange, RecordedReads, WholeFiles) => DeltaBatchWrite] = None,
    val merge: Option[MergeTerms] = None
) extends SupportsDelta {

  private val schema = TableSchema.of(snapshot)
  private val zone = FileSplits.sessionZone(spark)
  private val scans = ArrayBuffer.empty[TableScan]
  @volatile private var stated: Option[Expression] = None

  /** Says what the statement's condition is, once it is resolved. */
  def describe(condition: Expression): Unit = stated = Some(condition)

  /** The condition as the statement has it. */
  def condition: Option[Expression] = stated

  def partitionColumns: Seq[String] = schema.partitionColumns

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val read = merge.fold(schema)(_.schema())
    new TableScanBuilder(
      spark,
      SnapshotFiles(spark, log, snapshot, read),
      read,
      AnalysedColumns.without(options),
      scan => synchronized(scans += scan),
      isChanged = true
    )
  }

  override def newWriteBuilder(info: LogicalWriteInfo): DeltaWriteBuilder = new DeltaWriteBuilder {
    override def build(): DeltaWrite = new ChangeWrite
  }

  /**
   * Has each task's rows sorted by the partition they go to, as an append has: a join leaves them in
   * any order, and each change of the partition begins another file. Rows that only end go to none.
   *
   * @param unread files that end without being read, once they are known, and what the statement has read
   *   of the table before they were left out
   */
  private[rowlevel] final class ChangeWrite(unread: Option[(WholeFiles, RecordedReads)] = None)
      extends DeltaWrite with RequiresDistributionAndOrdering
      with RecordsReads with CountsOnce with CountsChangedRows {
    @volatile private var batch: Option[RowLevelBatchWrite] = None

    override val log: DeltaLog = RowLevelChange.this.log
    override val readVersion: Long = snapshot.version

    def change: RowLevelChange = RowLevelChange.this

    override def requiredDistribution(): Distribution = Distributions.unspecified()

    override def requiredOrdering(): Array[SortOrder] =
      if (command == Command.DELETE) Array.empty
      else TableWrite.orderedBy(partitionColumns)

    override def toBatch: DeltaBatchWrite = {
      val (whole, reads) = unread.getOrElse((WholeFiles.none, recorded))
      batchWrite.fold[DeltaBatchWrite] {
        val own = new RowLevelBatchWrite(change, reads, whole)
        batch = Some(own)
        own
      }(_(change, reads, whole))
    }

    private def progress: SessionWriteOptions = new SessionWriteOptions(spark, Map.empty)

    /** The session's progress is that of statements, and not of a part of a write that may have its own. */
    override def isApplied: Boolean = batchWrite.isEmpty && progress.isApplied(snapshot)

    override def skip(): Unit = progress.used()

    override def changedRows: ChangedRows = batch.fold(ChangedRows())(_.changedRows)

    def knowsWholeFiles: Boolean = unread.isDefined

    /** This write where the query has left out these files, of which all rows end. */
    def ending(files: WholeFiles): ChangeWrite = new ChangeWrite(Some((files, recorded)))

    override def description(): String = {
      val files = unread.fold("")(u => s", ${u._1.adds.size} files as a whole")
      s"deltaic $command on ${log.table}$files"
    }

    override def toString: String = description()
  }

  override def rowId(): Array[NamedReference] =
    ScanColumns.rowId.map(name => Expressions.column(name): NamedReference).toArray

  /** Where rows keep their ids, an update hands the old row's to the new one. */
  override def requiredMetadataAttributes(): Array[NamedReference] =
    if (command == Command.DELETE || !keepsRowIds) Array.empty
    else Array(Expressions.column(ScanColumns.TrackedRowId))

  private def keepsRowIds: Boolean = schema.rowTracking.exists(_.materialized.nonEmpty)

  /** An update stays one operation: its old row's position and its new row travel together. */
  override def representUpdateAsDeleteAndInsert(): Boolean = false

  override def description(): String = command.toString

  /** The files the scans chose, by their path in the log. */
  lazy val filesRead: Map[String, AddFile] =
    currentScans.iterator.flatMap(_.selectedFiles).map(file => file.path -> file).toMap

  /** Whether a scan is one of the statement's target. */
  def isTarget(scan: TableScan): Boolean = currentScans.exists(_ eq scan)

  /** @param reads all scans of the table in the statement, such as those of subqueries */
  def readSet(reads: RecordedReads): ReadSet = {
    val own = currentScans
    val others = reads.scans.filterNot(scan => own.exists(_ eq scan))
    ReadSet.union(
      new ScannedRows(spark, own, zone, reads.rowsAlone, reads.matches),
      new ScannedRows(spark, others, zone)
    )
  }

  private def currentScans: Seq[TableScan] = synchronized(scans.toList)
}
