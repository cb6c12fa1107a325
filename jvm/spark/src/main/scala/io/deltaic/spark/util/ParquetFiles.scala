package io.deltaic.spark.util

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

/** Opens Parquet files. Without options, Parquet would load Hadoop's configuration again for each file, in 10 ms. */
private[spark] object ParquetFiles {

  def open(path: Path, conf: Configuration): ParquetFileReader =
    open(HadoopInputFile.fromPath(path, conf))

  def open(file: HadoopInputFile): ParquetFileReader =
    ParquetFileReader.open(file, HadoopReadOptions.builder(file.getConfiguration).build())
}
