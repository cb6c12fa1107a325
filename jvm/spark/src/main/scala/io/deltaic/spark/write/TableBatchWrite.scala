package io.deltaic.spark.write

import java.util.{Locale, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write._

import io.deltaic.protocol.AddFile
import io.deltaic.spark.bridge.{FileChanges, ReadSet}
import io.deltaic.spark.scan.FileSplits.sessionZone
import io.deltaic.spark.scan.TableScan

/** Writes data files in the executors and commits them, with what they replace, as one version. */
private[spark] final class TableBatchWrite(
    target: WriteTarget,
    replaced: Replaced,
    writeOptions: JMap[String, String],
    computed: Set[String],
    reads: Seq[TableScan]
) extends BatchWrite {

  private val transaction = new WriteTransaction(
    target.spark,
    target.log,
    target.snapshot,
    intent
  )

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
    new TableWriterFactory(transaction.dataSpec)

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    val adds = written(messages)
    val ended = target.snapshot.map {
      new ReplacedFiles(_, transaction.schema, sessionZone(target.spark), replaced, adds)
    }
    val deletionTimestampMs = System.currentTimeMillis()
    val removes = ended.toSeq.flatMap(_.files).map(_.remove(deletionTimestampMs))
    val marks = messages.collect { case WrittenFiles(_, marks) => marks }
    transaction.commit(
      FileChanges(removes, adds),
      NewFiles(adds),
      ReadSet.union(ended.fold(readOfNoTable)(_.readSet), queryReads),
      identityMarks = IdentityMarks.merged(transaction.schema.stored, marks)
    )
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit =
    transaction.abort(NewFiles(written(messages)), tasksLost = messages.contains(null))

  override def toString: String = s"deltaic write to ${target.table}"

  private def intent: WriteIntent = {
    val options = writeOptions.asScala.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }.toMap
    val own = target.intent
    own.copy(
      mode = if (replaced == Replaced.Nothing) own.mode else "overwrite",
      operationParameters = own.operationParameters ++ modeParameters,
      options = own.options ++ options,
      computed = computed
    )
  }

  /** `mode` is what the user asked for, also when the table is created on the way. */
  private def modeParameters: Map[String, String] =
    if (target.intent.operation != "WRITE" || target.intent.operationParameters.contains("mode"))
      Map.empty
    else Map("mode" -> (if (replaced == Replaced.Nothing) "Append" else "Overwrite"))

  private def written(messages: Array[WriterCommitMessage]): Seq[AddFile] =
    messages.toSeq.collect { case WrittenFiles(files, _) => files }.flatten

  /** An overwrite has read that there is no table. */
  private def readOfNoTable: ReadSet =
    if (replaced == Replaced.Nothing) ReadSet.nothing else ReadSet.everything

  private def queryReads: ReadSet =
    if (reads.isEmpty) ReadSet.nothing else new ScannedRows(reads, sessionZone(target.spark))
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
