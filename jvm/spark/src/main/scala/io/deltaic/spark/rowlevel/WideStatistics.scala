package io.deltaic.spark.rowlevel

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.bridge.Json

/** Statistics of a file whose deletion vector grew (Protocol § Per-file Statistics). */
private[rowlevel] object WideStatistics {

  /**
   * The same bounds, marked as wide, with the row count that a deletion vector demands. Statistics
   * that cannot be read are left out, as every reader leaves them out of account.
   */
  def of(stats: Option[String], physicalRows: Long): String = {
    val json = stats.flatMap(Json.tryParse).getOrElse(Json.obj())
    json.put("numRecords", physicalRows)
    json.put("tightBounds", false)
    json.toString
  }
}

private[rowlevel] object PhysicalRows {

  /** For files whose writer left no statistics: the footer knows how many rows there are. */
  def fromFooter(table: Path, file: AddFile, configuration: Configuration): Long = {
    val path = LogPath.toAbsolute(table, file.path)
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, configuration))
    try reader.getRecordCount
    finally reader.close()
  }
}
