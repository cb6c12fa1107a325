package io.deltaic.spark.rowlevel

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.catalyst.plans.logical.AppendData
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.{SchemaInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.spark.util.TableWithSchema
import io.deltaic.spark.write.files.DataWriteSpec
import io.deltaic.spark.write.{NewFiles, TableWriterFactory, WriteTransaction, WrittenFiles}

/**
 * Copies the rows of a scan to new files, as a part of a write that commits these
 * files. It is an ordinary Spark plan from a scan to a write that does not commit.
 */
private[rowlevel] final class CopiedRows(spark: SparkSession, transaction: WriteTransaction) {

  /**
   * @param purpose the description of the Spark jobs
   * @param columns the columns to read and write
   * @param spec of the files
   */
  def write(
      purpose: String,
      columns: StructType,
      scan: CaseInsensitiveStringMap => ScanBuilder,
      spec: DataWriteSpec
  ): Seq[AddFile] = {
    val sink = new Sink(columns, spec)
    val source = new Source(columns, scan)
    transaction.describing(purpose) {
      SessionInternals.run(spark, AppendData.byPosition(relation(sink), relation(source)))
    }
    sink.written
  }

  private def relation(table: Table): DataSourceV2Relation =
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())

  private abstract class TableOf(rows: StructType) extends TableWithSchema {
    override def name(): String = transaction.log.table.toString
    // Nullability is checked when rows are written first, not when they are copied within the table.
    override def columns(): Array[Column] =
      SchemaInternals.columns(SchemaInternals.asNullable(rows))
  }

  private final class Source(rows: StructType, scan: CaseInsensitiveStringMap => ScanBuilder)
      extends TableOf(rows)
      with SupportsRead {
    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = scan(options)
  }

  private final class Sink(rows: StructType, spec: DataWriteSpec) extends TableOf(rows)
      with SupportsWrite {
    @volatile var written: Seq[AddFile] = Nil

    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_WRITE)

    override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new WriteBuilder {
      override def build(): Write = new Write {
        override def toBatch: BatchWrite = new BatchWrite {
          override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
            new TableWriterFactory(spec, rowsAreNew = false)
          override def commit(messages: Array[WriterCommitMessage]): Unit =
            written = files(messages)
          override def abort(messages: Array[WriterCommitMessage]): Unit =
            transaction.abort(NewFiles(files(messages)), tasksLost = messages.contains(null))
          override def toString: String =
            s"deltaic write of copied rows to ${transaction.log.table}"
        }
      }
    }

    private def files(messages: Array[WriterCommitMessage]): Seq[AddFile] =
      messages.toSeq.collect { case WrittenFiles(files, _) => files }.flatten
  }
}
