package io.deltaic.spark.util

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.{InputFile, LocalInputFile}
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}

/** Opens Parquet files. Without options, Parquet would load Hadoop's configuration again for each file, in 10 ms. */
private[spark] object ParquetFiles {

  def open(path: Path, conf: Configuration): ParquetFileReader =
    open(HadoopInputFile.fromPath(path, conf))

  def open(file: HadoopInputFile): ParquetFileReader =
    ParquetFileReader.open(file, options(file.getConfiguration))

  /** The options for many files, which take as long to make as a small footer takes to read. */
  def options(conf: Configuration): ParquetReadOptions = HadoopReadOptions.builder(conf).build()

  /** A file whose status is known. Java reads local ones, without the checksums that Hadoop keeps beside them. */
  def input(file: FileStatus, conf: Configuration): InputFile =
    if (LocalFiles.isLocal(file.getPath)) new LocalInputFile(LocalFiles.of(file.getPath))
    else HadoopInputFile.fromStatus(file, conf)
}
