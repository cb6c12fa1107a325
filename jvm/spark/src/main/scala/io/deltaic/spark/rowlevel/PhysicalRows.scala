package io.deltaic.spark.rowlevel

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import io.deltaic.protocol.LogPath

private[rowlevel] object PhysicalRows {

  /** The row count in the Parquet footer, for files without statistics. */
  def fromFooter(table: Path, file: String, configuration: Configuration): Long = {
    val path = LogPath.toAbsolute(table, file)
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, configuration))
    try reader.getRecordCount
    finally reader.close()
  }
}
