package io.deltaic.spark.convert

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructType}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.commit.{CommitFiles, Message, PreparedCommit}
import io.deltaic.spark.util.Json

/**
 * The Parquet files of CONVERT TO DELTA, or those that are cloned, as far as they are known before Python plans the
 * commit.
 */
final class Conversion private (
    spark: SparkSession,
    log: DeltaLog,
    private[spark] val table: ParquetTable
) {

  /** The columns and the number of files. */
  def summary(): String = Message.of("ParquetSummary")(
    "schema" -> table.schema.json,
    "partitionColumns" -> table.partitioning.fieldNames.toSeq,
    "isPartitioningInferred" -> table.isPartitioningInferred,
    "numFiles" -> table.numFiles
  ).toString

  /**
   * The commit that adds all files to a table in their folder.
   *
   * @param summaryJson the commit as Python has planned it
   */
  def prepare(summaryJson: String): PreparedCommit = {
    table.fileOutside.foreach { file =>
      throw ConversionError.file(log.table, file, "it is outside of the table's directory")
    }
    val summary = Json.parse(summaryJson)
    val properties = PythonCommand.metadata(summary).configuration
    PythonCommand.prepare(spark, log, summary, CommitFiles(adds = table.adds(properties)))
  }
}

private[spark] object Conversion {

  /**
   * Reads the files.
   *
   * @param request a `ParquetRequest`
   */
  def read(spark: SparkSession, log: DeltaLog, request: ObjectNode): Conversion = {
    Message.checked("ParquetRequest", request)
    TableLocation.tableAbove(spark, log).foreach { table =>
      throw TableLocation.insideTableError(log.table, table)
    }
    val statistics =
      if (request.required("collectStatistics").booleanValue)
        Some(Json.strings(request.required("properties")))
      else None
    val table = ParquetTable.read(
      spark,
      ParquetSource(
        log.table,
        text(request, "catalogTable").map(entry(spark, _)),
        text(request, "partitionSchema").map(schema),
        statistics
      )
    )
    new Conversion(spark, log, table)
  }

  private def text(request: ObjectNode, name: String): Option[String] =
    Option(request.get(name)).filter(_.isTextual).map(_.textValue)

  private def entry(spark: SparkSession, name: String): CatalogTable = {
    val parts = spark.sessionState.sqlParser.parseMultipartIdentifier(name)
    spark.sessionState.catalog.getTableMetadata(
      TableIdentifier(parts.last, parts.dropRight(1).lastOption)
    )
  }

  private def schema(json: String): StructType =
    DataType.fromJson(json).asInstanceOf[StructType]
}
