package io.deltaic.spark.rowlevel

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, IsNotNull}
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
import io.deltaic.spark.write.{RecordedReads, RecordsReads, ScannedRows, TableWrite}

/**
 * One DELETE, UPDATE or MERGE, from the snapshot it reads to the commit it makes. Spark plans it; its
 * tasks report positions of rows that end, and write the rows that begin.
 *
 * @param batchWrite makes a commit of what they report, given the other scans of the statement
 */
private[spark] final class RowLevelChange(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Snapshot,
    override val command: Command,
    batchWrite: (RowLevelChange, RecordedReads) => DeltaBatchWrite = new RowLevelBatchWrite(_, _)
) extends SupportsDelta {

  private val schema = TableSchema.of(snapshot)
  private val zone = FileSplits.sessionZone(spark)
  private val scans = ArrayBuffer.empty[TableScan]

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new TableScanBuilder(
      spark,
      SnapshotFiles(spark, log, snapshot, schema),
      schema,
      options,
      scan => synchronized(scans += scan)
    )

  override def newWriteBuilder(info: LogicalWriteInfo): DeltaWriteBuilder = new DeltaWriteBuilder {
    override def build(): DeltaWrite = new ChangeWrite
  }

  /**
   * Has each task's rows sorted by the partition they go to, as an append has: a join leaves them in
   * any order, and each change of the partition begins another file. Rows that only end go to none.
   */
  private final class ChangeWrite extends DeltaWrite with RequiresDistributionAndOrdering
      with RecordsReads with CountsChangedRows {
    @volatile private var batch: Option[RowLevelBatchWrite] = None

    override val log: DeltaLog = RowLevelChange.this.log
    override val readVersion: Long = snapshot.version

    override def requiredDistribution(): Distribution = Distributions.unspecified()

    override def requiredOrdering(): Array[SortOrder] =
      if (command == Command.DELETE) Array.empty
      else TableWrite.orderedBy(schema.partitionColumns)

    override def toBatch: DeltaBatchWrite = {
      val write = batchWrite(RowLevelChange.this, recorded)
      batch = Some(write).collect { case own: RowLevelBatchWrite => own }
      write
    }

    override def changedRows: ChangedRows = batch.fold(ChangedRows())(_.changedRows)

    override def description(): String = s"deltaic $command on ${log.table}"
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

  /** The conditions by which rows were looked for, without the null checks that Spark infers from them. */
  def predicates: Seq[Expression] = {
    val (nullChecks, conditions) = currentScans.flatMap(_.filters).distinct.partition {
      case IsNotNull(_: Attribute) => true
      case _ => false
    }
    val constrained = AttributeSet(conditions.flatMap(_.references))
    conditions ++ nullChecks.filterNot(_.references.subsetOf(constrained))
  }

  /** @param reads all scans of the table in the statement, such as those of subqueries */
  def readSet(reads: RecordedReads): ReadSet = {
    val own = currentScans
    val others = reads.scans.filterNot(scan => own.exists(_ eq scan))
    ReadSet.union(
      new ScannedRows(spark, own, zone, reads.rowsAlone, reads.merge),
      new ScannedRows(spark, others, zone)
    )
  }

  private def currentScans: Seq[TableScan] = synchronized(scans.toList)
}
