package io.deltaic.spark.rowlevel

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.catalyst.plans.logical.AppendData
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.{SchemaShims, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.scan.{ListedFiles, TableScanBuilder, TableSchema}
import io.deltaic.spark.write._

/**
 * Writes the live rows of some files into new files: the purge of deletion vectors. It is an ordinary
 * Spark plan from a scan of exactly these files to a write that does not commit.
 */
private[rowlevel] final class FileRewriter(
    spark: SparkSession,
    transaction: WriteTransaction,
    snapshot: Snapshot
) {

  /** @param files the files to rewrite, each with the vector of the rows to leave behind */
  def rewrite(files: Seq[AddFile]): Seq[AddFile] =
    if (files.isEmpty) Nil
    else {
      val source = new RewriteSource(files.toIndexedSeq)
      val sink = new RewriteSink
      SessionShims.run(spark, AppendData.byPosition(relation(sink), relation(source)))
      sink.written
    }

  private val tableSchema = TableSchema.of(snapshot)

  private def relation(table: Table): DataSourceV2Relation =
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())

  private abstract class RewriteTable extends Table {
    override def name(): String = snapshot.table.toString
    // Nullability is checked where rows enter the table, not where they move within it.
    override def columns(): Array[Column] =
      SchemaShims.columns(SchemaShims.asNullable(tableSchema.all))
  }

  private final class RewriteSource(files: IndexedSeq[AddFile])
      extends RewriteTable
      with SupportsRead {
    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
      val listed = ListedFiles(snapshot.table, snapshot.version, files)
      new TableScanBuilder(spark, listed, tableSchema, options)
    }
  }

  private final class RewriteSink extends RewriteTable with SupportsWrite {
    @volatile var written: Seq[AddFile] = Nil

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
