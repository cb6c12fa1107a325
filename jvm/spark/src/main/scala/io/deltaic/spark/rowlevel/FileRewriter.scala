package io.deltaic.spark.rowlevel

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.catalyst.plans.logical.AppendData
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.{SchemaShims, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.spark.write._

/**
 * Writes the live rows of some files into new files: the purge of deletion vectors. It is an ordinary
 * Spark plan from a scan of exactly these files to a write that does not commit.
 */
private[rowlevel] final class FileRewriter(transaction: WriteTransaction) {

  /** @param files the files to rewrite, each with the vector of the rows to leave behind */
  def rewrite(files: Seq[AddFile]): Seq[AddFile] =
    if (files.isEmpty) Nil
    else {
      val source = new ListedRows(transaction, files)
      val sink = new RewriteSink
      SessionShims.run(transaction.spark, AppendData.byPosition(relation(sink), relation(source)))
      sink.written
    }

  private def relation(table: Table): DataSourceV2Relation =
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())

  private final class RewriteSink extends Table with SupportsWrite {
    @volatile var written: Seq[AddFile] = Nil

    override def name(): String = transaction.log.table.toString
    override def columns(): Array[Column] =
      SchemaShims.columns(SchemaShims.asNullable(transaction.schema.all))

    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_WRITE)

    override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new WriteBuilder {
      override def build(): Write = new Write {
        override def toBatch: BatchWrite = new BatchWrite {
          override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
            new TableWriterFactory(transaction.dataSpec, rowsAreNew = false)
          override def commit(messages: Array[WriterCommitMessage]): Unit =
            written = files(messages)
          override def abort(messages: Array[WriterCommitMessage]): Unit =
            transaction.abort(NewFiles(files(messages)), tasksLost = messages.contains(null))
        }
      }
    }

    private def files(messages: Array[WriterCommitMessage]): Seq[AddFile] =
      messages.toSeq.collect { case WrittenFiles(files, _) => files }.flatten
  }
}
