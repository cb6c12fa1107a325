package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.write._

import io.deltaic.protocol.{AddCdcFile, AddFile}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.bridge.{FileChanges, ReadSet}
import io.deltaic.spark.scan.FileSplits.sessionZone
import io.deltaic.spark.scan.{SnapshotFiles, TableSchema}

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

  /** Ends what the tasks' jobs are called. Spark lets them run between two calls on one thread. */
  private var tasksDone: () => Unit = () => ()

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory = {
    val factory = new TableWriterFactory(transaction.dataSpec)
    tasksDone = transaction.describe("write the rows")
    factory
  }

  /** Files written on the driver's side of the commit; they are cleaned up with the tasks' own. */
  private var ended: EndedFiles = EndedFiles.none

  @volatile private var committed = false

  /** Whether it is a version of the table: a write that has been made already is not made again. */
  def isCommitted: Boolean = committed

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    tasksDone()
    val scannedAtMs = System.currentTimeMillis()
    val adds = written(messages)
    val replacedRows = target.snapshot.map(replacedIn(_, adds))
    ended = replacedRows.fold(EndedFiles.none)(_.files)
    val marks = messages.collect { case WrittenFiles(_, marks) => marks }
    committed = transaction.commit(
      FileChanges(
        ended.removes.map(_.copy(dataChange = transaction.plan.changesData)),
        ended.adds ++ adds.map(_.copy(dataChange = transaction.plan.changesData)),
        ended.changeFiles.map(f => AddCdcFile(f.path, f.partitionValues, f.sizeBytes))
      ),
      ended.newFiles(adds),
      ReadSet.union(replacedRows.fold(readOfNoTable)(_.readSet), queryReads),
      replacedRows.flatMap(_.numRows).fold(Map.empty[String, Long]) { rows =>
        Map(
          "numDeletedRows" -> rows,
          "numCopiedRows" -> ended.copiedRows,
          "numPreservedRows" -> (if (transaction.movedSpec.tracked > 0) ended.copiedRows else 0L),
          "numInsertedRows" -> adds.flatMap(FileChanges.rows).sum,
          "numRecordedChanges" -> ended.changeFiles.flatMap(FileChanges.rows).sum
        )
      } ++ timesOf(scannedAtMs),
      identityMarks = IdentityMarks.merged(transaction.schema.stored, marks),
      rowEnds = replacedRows.flatMap(_.rowEnds)
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
    transaction.abort(ended.newFiles(written(messages)), tasksLost = messages.contains(null))
  }

  private def replacedIn(snapshot: Snapshot, adds: Seq[AddFile]): EndedRows = replaced match {
    case Replaced.Rows(condition) if !isOfPartitions(condition) =>
      target.endsRows(transaction, snapshot, replaced, adds)
    case Replaced.Matching(_, _, _) => target.endsRows(transaction, snapshot, replaced, adds)
    case _ =>
      val schema = transaction.schema
      val candidates = SnapshotFiles(target.spark, target.log, snapshot, schema)
      val zone = sessionZone(target.spark)
      val whole = new ReplacedFiles(snapshot, schema, zone, candidates, replaced, adds)
      val deletionTimestampMs = System.currentTimeMillis()
      val removes = whole.files.map(_.remove(deletionTimestampMs))
      EndedRows(EndedFiles(removes), whole.readSet, countOf(whole.files))
  }

  /** Counted where the history tells of it: when the user said which rows. */
  private def countOf(files: => Seq[AddFile]): Option[Long] = replaced match {
    case Replaced.Rows(_) => Some(files.flatMap(FileChanges.liveRows).sum)
    case _ => None
  }

  private def isOfPartitions(condition: Expression): Boolean =
    condition.references.forall(column => target.partitionColumns.contains(column.name))

  override def toString: String = s"deltaic write to ${target.table}"

  private def intent: WriteIntent = {
    val own = target.intent
    val stated = own.copy(
      mode = if (replaced == Replaced.Nothing) own.mode else "overwrite",
      operationParameters = own.operationParameters ++ modeParameters,
      options = own.options ++ options ++ own.evolved.map(_ => "mergeschema" -> "true"),
      computed = computed
    )
    replaced match {
      case Replaced.Rows(condition) => replacing(stated, condition)
      case Replaced.Matching(_, _, told) =>
        stated.copy(operationParameters = stated.operationParameters + told)
      case _ => stated
    }
  }

  private def replacing(stated: WriteIntent, condition: Expression): WriteIntent = {
    val changesData = !stated.options.get("datachange").exists(_.trim.equalsIgnoreCase("false"))
    ReplaceWhere.requireAllowed(target, condition)
    target.snapshot.foreach { snapshot =>
      ReplaceWhere.requirePresent(target.table, condition, TableSchema.of(snapshot).all)
    }
    if (!changesData && !isOfPartitions(condition))
      throw ReplaceWhere.refused(
        target.table,
        condition.sql,
        "with dataChange=false, a condition can speak of partition columns only"
      )
    val predicate = stated.options.get("replacewhere").orElse(target.replacedSql)
    stated.copy(
      operationParameters =
        stated.operationParameters + ("predicate" -> predicate.getOrElse(condition.sql)),
      rowCondition = Option.when(ReplaceWhere.isChecked(target.spark))(condition)
    )
  }

  /** `mode` is what the user asked for, also when the table is created on the way. */
  private def modeParameters: Map[String, String] =
    if (target.intent.operation != "WRITE" || target.intent.operationParameters.contains("mode"))
      Map.empty
    else
      Map(
        "mode" -> (if (replaced == Replaced.Nothing) "Append" else "Overwrite"),
        "partitionBy" -> "[]"
      )

  private def written(messages: Array[WriterCommitMessage]): Seq[AddFile] =
    messages.toSeq.collect { case WrittenFiles(files, _) => files }.flatten

  /** An overwrite has read that there is no table. */
  private def readOfNoTable: ReadSet =
    if (replaced == Replaced.Nothing) ReadSet.nothing else ReadSet.everything

  /** Of its target, a MERGE that only inserts has read what matches its source. */
  private def queryReads: ReadSet = {
    val zone = sessionZone(target.spark)
    val (ofMerge, others) = reads.scans.partition(scan => reads.matches.exists(_.reads(scan)))
    ReadSet.union(
      new ScannedRows(target.spark, ofMerge, zone, matches = reads.matches),
      new ScannedRows(target.spark, others, zone)
    )
  }
}

/** @param rowsAreNew see [[PartitionedDataWriter]] */
private[spark] final class TableWriterFactory(spec: DataWriteSpec, rowsAreNew: Boolean = true)
    extends DataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val writer = new PartitionedDataWriter(spec, partitionId, rowsAreNew)
      override def write(row: InternalRow): Unit = writer.write(row)
      override def commit(): WriterCommitMessage =
        WrittenFiles(writer.commit(), writer.identityMarks)
      override def abort(): Unit = writer.abort()
      override def close(): Unit = ()
    }
}
