package io.deltaic.replay

import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.SimpleGroup
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.schema.{MessageType, MessageTypeParser}

import io.deltaic.TableBuilder

/** Writes Parquet checkpoints row by row. */
object CheckpointRows {

  val definitionColumns =
    """
    optional group protocol {
      optional int32 minReaderVersion; optional int32 minWriterVersion;
      optional group readerFeatures (LIST) { repeated group list { optional binary element (UTF8); } }
      optional group writerFeatures (LIST) { repeated binary array (UTF8); }
    }
    optional group metaData {
      optional binary id (UTF8); optional binary schemaString (UTF8); optional int32 unknown;
      optional group configuration (MAP) {
        repeated group key_value { required binary key (UTF8); optional binary value (UTF8); } }
    }"""

  val plainAdd =
    """
    optional group add { optional binary path (UTF8); optional int64 size; optional int32 unknown; }"""

  def schema(columns: String*): MessageType =
    MessageTypeParser.parseMessageType(columns.mkString("message m {", "\n", "}"))

  /** Writes a file of the log directory, or below it. */
  def write(table: TableBuilder, name: String, schema: MessageType, rowGroupBytes: Long = 1L << 27)(
      rows: (Group => Unit)*
  ): Unit = {
    val file = new Path(table.log.resolve(name).toUri)
    val writer =
      ExampleParquetWriter.builder(file).withType(schema).withRowGroupSize(rowGroupBytes)
        .withCompressionCodec(CompressionCodecName.SNAPPY).build()
    try
      rows.foreach { fill =>
        val row = new SimpleGroup(schema)
        fill(row)
        writer.write(row)
      }
    finally writer.close()
  }

  def protocolRow(row: Group): Unit = {
    val p = row.addGroup("protocol").append("minReaderVersion", 3).append("minWriterVersion", 7)
    p.addGroup("readerFeatures").addGroup("list").append("element", "deletionVectors")
    val writers = p.addGroup("writerFeatures")
    writers.append("array", "deletionVectors")
    writers.append("array", "appendOnly")
  }

  def metadataRow(row: Group): Unit = {
    val m = row.addGroup("metaData").append("id", "from-checkpoint").append("schemaString", "{}")
    val map = m.addGroup("configuration")
    map.addGroup("key_value").append("key", "a").append("value", "b")
    map.addGroup("key_value").append("key", "c")
    ()
  }

  def addRow(path: String)(row: Group): Unit = {
    row.addGroup("add").append("path", path).append("size", 7L)
    ()
  }

  val v2: String =
    """
    optional group checkpointMetadata { optional int64 version; }
    optional group sidecar {
      optional binary path (UTF8); optional int64 sizeInBytes; optional int64 modificationTime; }"""

  def checkpointMetadataRow(version: Long)(row: Group): Unit = {
    row.addGroup("checkpointMetadata").append("version", version)
    ()
  }

  def sidecarRow(path: String)(row: Group): Unit = {
    row.addGroup("sidecar").append("path", path).append("sizeInBytes", 1L)
    ()
  }
}
