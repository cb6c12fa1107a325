package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.write._

import io.deltaic.protocol.{AddCdcFile, AddFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.reads.{RecordedReads, ScannedRows}
import io.deltaic.spark.commit.{CommitFiles, ReadSet}
import io.deltaic.spark.metrics.CommittedWrite
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.scan.files.SnapshotFiles
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.write.files.{
  ClusteringBuffer,
  DataWriteSpec,
  IdentityHighWaterMarks,
  PartitionedDataWriter
}

/**
 * Writes data files in the executors and commits them, with what they replace, as one version.
 *
 * @param options of the write, keys in lower case
 */
private[spark] final class TableBatchWrite(
    target: WriteTarget,
    replaced: Replaced,
    options: Map[String, String],
    computed: Set[String],
    reads: RecordedReads
) extends BatchWrite {

  private val startedAtMs = System.currentTimeMillis()

  private val transaction = new WriteTransaction(
    target.spark,
    target.log,
    target.snapshot,
    intent
  )

  /** Resets the description of the tasks' jobs. Spark runs them between two calls on one thread. */
  private var tasksDone: () => Unit = () => ()

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory = {
    val factory =
      new TableWriterFactory(transaction.dataSpec, clusteredBy = transaction.taskClusteringColumns)
    tasksDone = transaction.describe("write the rows")
    factory
  }

  /** Files written by the driver for this commit; on abort they are deleted with those of the tasks. */
  private var deletions: RowDeletionActions = RowDeletionActions.none

  @volatile private var committed = false

  def committedWrite: Option[CommittedWrite] = transaction.committed

  /** Whether it is a version of the table; false for a write that was skipped as already applied. */
  def isCommitted: Boolean = committed

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    tasksDone()
    val scannedAtMs = System.currentTimeMillis()
    val adds = written(messages)
    val replacedRows = target.snapshot.map(replacedIn(_, adds))
    deletions = replacedRows.fold(RowDeletionActions.none)(_.files)
    val marks = messages.collect { case WrittenFiles(_, marks) => marks }
    committed = transaction.commit(
      CommitFiles(
        deletions.removes.map(_.copy(dataChange = transaction.plan.changesData)),
        deletions.adds ++ adds.map(_.copy(dataChange = transaction.plan.changesData)),
        deletions.changeFiles.map(f => AddCdcFile(f.path, f.partitionValues, f.sizeBytes))
      ),
      deletions.newFiles(adds),
      ReadSet.union(replacedRows.fold(readOfNoTable)(_.readSet), queryReads),
      replacedRows.flatMap(_.numRows).fold(Map.empty[String, Long]) { rows =>
        Map(
          "numDeletedRows" -> rows,
          "numCopiedRows" -> deletions.copiedRows,
          "numPreservedRows" ->
            (if (transaction.copySpec.numRowTrackingColumns > 0) deletions.copiedRows else 0L),
          "numInsertedRows" -> adds.flatMap(CommitFiles.rows).sum,
          "numRecordedChanges" -> deletions.changeFiles.flatMap(CommitFiles.rows).sum
        )
      } ++ timesOf(scannedAtMs),
      identityHighWaterMarks = IdentityHighWaterMarks.merged(transaction.schema.stored, marks),
      rebaseSettings = replacedRows.flatMap(_.rebaseSettings)
    )
  }

  private def timesOf(scannedAtMs: Long): Map[String, Long] = {
    val finishedAtMs = System.currentTimeMillis()
    Map(
      "scanTimeMs" -> (scannedAtMs - startedAtMs),
      "rewriteTimeMs" -> (finishedAtMs - scannedAtMs),
      "executionTimeMs" -> (finishedAtMs - startedAtMs)
    )
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit = {
    tasksDone()
    transaction.abort(deletions.newFiles(written(messages)), tasksLost = messages.contains(null))
  }

  private def replacedIn(
      snapshot: Snapshot,
      adds: Seq[AddFile]
  ): RowDeletionResult = replaced match {
    case Replaced.Rows(condition) if !isOfPartitions(condition) =>
      target.deletesRows(transaction, snapshot, replaced, adds)
    case Replaced.Matching(_, _, _) => target.deletesRows(transaction, snapshot, replaced, adds)
    case _ =>
      val schema = transaction.schema
      val candidates = SnapshotFiles(target.spark, target.log, snapshot, schema)
      val zone = sessionZone(target.spark)
      val whole = new OverwrittenFiles(snapshot, schema, zone, candidates, replaced, adds)
      val deletionTimestampMs = System.currentTimeMillis()
      val removes = whole.files.map(_.remove(deletionTimestampMs))
      RowDeletionResult(RowDeletionActions(removes), whole.readSet, countOf(whole.files))
  }

  /** Counted only if it is an operation metric: when the user specified a condition. */
  private def countOf(files: => Seq[AddFile]): Option[Long] = replaced match {
    case Replaced.Rows(_) => Some(files.flatMap(CommitFiles.liveRows).sum)
    case _ => None
  }

  private def isOfPartitions(condition: Expression): Boolean =
    condition.references.forall(column => target.partitionColumns.contains(column.name))

  override def toString: String = s"deltaic write to ${target.table}"

  private def intent: WriteIntent = {
    val own = target.intent
    val evolving = own.evolved.map(_ => "mergeschema" -> "true")
    val configured = own
      .copy(
        mode = if (replaced == Replaced.Nothing) own.mode else "overwrite",
        computed = computed
      )
      .withParameters(modeParameters.toSeq: _*)
      .withOptions(own.operation.options ++ options ++ evolving)
    replaced match {
      case Replaced.Rows(condition) => replacing(configured, condition)
      case Replaced.Matching(_, _, parameter) =>
        configured.withParameters(parameter)
      case _ => configured
    }
  }

  private def replacing(configured: WriteIntent, condition: Expression): WriteIntent = {
    val changesData =
      !configured.operation.options.get("datachange").exists(_.trim.equalsIgnoreCase("false"))
    ReplaceWhere.requireAllowed(target, condition)
    target.snapshot.foreach { snapshot =>
      ReplaceWhere.requirePresent(target.table, condition, TableSchema.of(snapshot).all)
    }
    if (!changesData && !isOfPartitions(condition))
      throw ReplaceWhere.refused(
        target.table,
        condition.sql,
        "with dataChange=false, a condition can reference partition columns only"
      )
    val predicate = configured.operation.options.get("replacewhere").orElse(target.replacedSql)
    configured
      .copy(rowCondition = Option.when(ReplaceWhere.isChecked(target.spark))(condition))
      .withParameters("predicate" -> predicate.getOrElse(condition.sql))
  }

  /** `mode` is what the user specified, also if the write creates the table. */
  private def modeParameters: Map[String, String] =
    if (
      target.intent.operation.name != "WRITE" || target.intent.operation.parameters.contains("mode")
    )
      Map.empty
    else
      Map(
        "mode" -> (if (replaced == Replaced.Nothing) "Append" else "Overwrite"),
        "partitionBy" -> "[]"
      )

  private def written(messages: Array[WriterCommitMessage]): Seq[AddFile] =
    messages.toSeq.collect { case WrittenFiles(files, _) => files }.flatten

  /** An overwrite of a missing table has read that there is no table. */
  private def readOfNoTable: ReadSet =
    if (replaced == Replaced.Nothing) ReadSet.nothing else ReadSet.everything

  /** An insert-only MERGE has read the rows of its target that match its source. */
  private def queryReads: ReadSet = {
    val zone = sessionZone(target.spark)
    val (ofMerge, others) = reads.scans.partition(scan => reads.matches.exists(_.reads(scan)))
    ReadSet.union(
      new ScannedRows(target.spark, ofMerge, zone, matches = reads.matches),
      new ScannedRows(target.spark, others, zone)
    )
  }
}

/**
 * @param rowsAreNew see [[PartitionedDataWriter]]
 * @param clusteredBy the columns by which the rows of each task are ordered; none if they stay in their order
 */
private[spark] final class TableWriterFactory(
    spec: DataWriteSpec,
    rowsAreNew: Boolean = true,
    clusteredBy: Seq[Seq[String]] = Nil
) extends DataWriterFactory {

  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val writer = new PartitionedDataWriter(spec, partitionId, rowsAreNew)
      private val clustered =
        if (clusteredBy.isEmpty) null
        else new ClusteringBuffer(clusteredBy, spec.schema, writer.write)

      override def write(row: InternalRow): Unit =
        if (clustered == null) writer.write(row) else clustered.add(row)

      override def commit(): WriterCommitMessage = {
        if (clustered != null) clustered.flush()
        WrittenFiles(writer.commit(), writer.identityHighWaterMarks)
      }
      override def abort(): Unit = writer.abort()
      override def close(): Unit = ()
    }
}
