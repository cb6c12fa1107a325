package io.delta

import org.apache.spark.sql.streaming.{DataStreamReader, DataStreamWriter, StreamingQuery}
import org.apache.spark.sql.{DataFrame, DataFrameReader, DataFrameWriter}

/** `spark.read.delta(path)` for `spark.read.format("delta").load(path)`, and the same for writes and streams. */
package object implicits {

  implicit class DeltaDataFrameReader(val reader: DataFrameReader) extends AnyVal {
    def delta(path: String): DataFrame = reader.format("delta").load(path)
  }

  implicit class DeltaDataStreamReader(val dataStreamReader: DataStreamReader) extends AnyVal {
    def delta(path: String): DataFrame = dataStreamReader.format("delta").load(path)
  }

  implicit class DeltaDataFrameWriter[T](val dfWriter: DataFrameWriter[T]) extends AnyVal {
    def delta(output: String): Unit = dfWriter.format("delta").save(output)
  }

  implicit class DeltaDataStreamWriter[T](val dataStreamWriter: DataStreamWriter[T])
      extends AnyVal {
    def delta(path: String): StreamingQuery = dataStreamWriter.format("delta").start(path)
  }
}
