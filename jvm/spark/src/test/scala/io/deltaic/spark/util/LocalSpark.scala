package io.deltaic.spark.util

import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row, SparkSession, classic}

import io.deltaic.protocol.AddFile
import io.deltaic.spark.write.files.{DataWriteSpec, PartitionedDataWriter, WrittenTable}

/** A Spark session for the suite, a directory for each test, and rows as an executor receives them. */
trait LocalSpark { this: munit.FunSuite =>
  protected var spark: SparkSession = _

  protected val table: FunFixture[Path] =
    FunFixture[Path](
      _ => Files.createTempDirectory("deltaic-write"),
      d => FileUtils.deleteDirectory(d.toFile)
    )

  override def beforeAll(): Unit =
    spark = SparkSession
      .builder()
      .master("local[2]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.shuffle.partitions", "2")
      .config("spark.sql.session.timeZone", "America/Los_Angeles")
      .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  protected def dataFrame(rows: Seq[Row], schema: StructType): DataFrame = {
    val list = new java.util.ArrayList[Row]()
    rows.foreach(list.add(_))
    spark.createDataFrame(list, schema)
  }

  protected def internalRows(df: DataFrame): Seq[InternalRow] =
    df.asInstanceOf[classic.DataFrame].queryExecution.executedPlan.executeCollect().toSeq

  /** The only file of a write. */
  protected def only(files: Seq[AddFile]): AddFile = {
    assertEquals(files.size, 1)
    files.head
  }

  /** Writes rows as one task would. */
  protected def write(
      directory: Path,
      df: DataFrame,
      partitionColumns: Seq[String] = Nil,
      properties: Map[String, String] = Map.empty,
      options: Map[String, String] = Map.empty
  ): Seq[AddFile] = {
    val spec = DataWriteSpec.forTable(
      spark,
      WrittenTable(directory.toString, df.schema, partitionColumns, properties),
      options
    )
    val writer = new PartitionedDataWriter(spec, taskPartition = 7)
    internalRows(df).foreach(writer.write)
    writer.commit()
  }
}
