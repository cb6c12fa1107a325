package io.deltaic.spark.write

import java.util.{Locale, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  And,
  AttributeReference,
  Cast,
  EqualNullSafe,
  Expression,
  IsNull,
  Literal
}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.sources

import io.deltaic.protocol.{AddFile, RemoveFile}
import io.deltaic.spark.bridge.{FileChanges, ReadSet}
import io.deltaic.spark.scan.FileSplits.sessionZone
import io.deltaic.spark.scan.TableSchema
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/** Writes data files in the executors and commits them, with what they replace, as one version. */
private[spark] final class TableBatchWrite(
    target: WriteTarget,
    replaced: Replaced,
    writeOptions: JMap[String, String]
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
    transaction.commit(FileChanges(removes(adds), adds), readSet)
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit =
    transaction.abort(written(messages))

  override def toString: String = s"deltaic write to ${target.table}"

  private def intent: WriteIntent = {
    val options = writeOptions.asScala.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }.toMap
    val own = target.intent
    own.copy(
      mode = if (replaced == Replaced.Nothing) own.mode else "overwrite",
      operationParameters = own.operationParameters ++ modeParameters,
      options = own.options ++ options
    )
  }

  /** `mode` is what the user asked for, also when the table is created on the way. */
  private def modeParameters: Map[String, String] =
    if (target.intent.operation != "WRITE" || target.intent.operationParameters.contains("mode"))
      Map.empty
    else Map("mode" -> (if (replaced == Replaced.Nothing) "Append" else "Overwrite"))

  private def written(messages: Array[WriterCommitMessage]): Seq[AddFile] =
    messages.toSeq.collect { case WrittenFiles(files) => files }.flatten

  private def removes(adds: Seq[AddFile]): Seq[RemoveFile] = target.snapshot match {
    case None => Nil
    case Some(snapshot) =>
      val deletionTimestampMs = System.currentTimeMillis()
      val files = snapshot.files
      val ordinals: Iterator[Int] = replaced match {
        case Replaced.Nothing => Iterator.empty
        case Replaced.Everything => (0 until files.size).iterator
        case Replaced.Partitions(filters) =>
          val schema = transaction.schema
          val statistics =
            SnapshotStatistics.of(snapshot, schema.skipping, sessionZone(target.spark))
          FileSelection.select(
            statistics,
            filters.map(partitionCondition(schema, _))
          ).files.iterator
        case Replaced.WrittenPartitions =>
          val touched = adds.iterator.map(_.partitionValues).toSet
          (0 until files.size).iterator.filter(i => touched(files.add(i).partitionValues))
      }
      ordinals.map(files.add(_).remove(deletionTimestampMs)).toSeq
  }

  private def readSet: ReadSet =
    if (replaced == Replaced.Nothing) ReadSet.nothing else ReadSet.everything

  /** The conditions that `INSERT OVERWRITE ... PARTITION (p = 1)` yields. */
  private def partitionCondition(schema: TableSchema, filter: sources.Filter): Expression = {
    def column(name: String): Expression = {
      val field = schema.partition(name)
      AttributeReference(field.name, field.dataType)()
    }
    def equal(name: String, value: Any): Expression =
      EqualNullSafe(column(name), Cast(Literal(value), schema.partition(name).dataType))
    filter match {
      case sources.EqualTo(name, value) => equal(name, value)
      case sources.EqualNullSafe(name, value) => equal(name, value)
      case sources.IsNull(name) => IsNull(column(name))
      case sources.And(left, right) =>
        And(partitionCondition(schema, left), partitionCondition(schema, right))
      case other =>
        throw WriteTransaction.unsupported(target.table, s"overwriting the rows where $other")
    }
  }
}

private[spark] final class TableWriterFactory(spec: DataWriteSpec) extends DataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val writer = new PartitionedDataWriter(spec, partitionId)
      override def write(row: InternalRow): Unit = writer.write(row)
      override def commit(): WriterCommitMessage = WrittenFiles(writer.commit())
      override def abort(): Unit = writer.abort()
      override def close(): Unit = ()
    }
}
