package io.delta

import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.SparkSession

import io.deltaic.spark.PythonApi

/** A Spark session with the extension and the catalog by delta-spark's names, and a directory for each test. */
trait DeltaSession { this: munit.FunSuite =>
  protected var spark: SparkSession = _

  protected val directory: FunFixture[Path] = FunFixture[Path](
    _ => Files.createTempDirectory("delta api"),
    created => {
      // Checksums are written in the background.
      assert(PythonApi.awaitMaintenance(60000))
      FileUtils.deleteDirectory(created.toFile)
    }
  )

  override def beforeAll(): Unit =
    spark = SparkSession
      .builder()
      .master("local[2]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.shuffle.partitions", "2")
      .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
      .config(
        "spark.sql.catalog.spark_catalog",
        "org.apache.spark.sql.delta.catalog.DeltaCatalog"
      )
      .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  /** Creates a table with the ids from 0 to a number, exclusive, and twice each id as `v`; returns its path. */
  protected def created(directory: Path, ids: Long = 10, properties: String = ""): String = {
    val path = directory.resolve("t").toString
    val set = if (properties.isEmpty) "" else s"TBLPROPERTIES ($properties)"
    spark.sql(s"CREATE TABLE delta.`$path` (id BIGINT, v BIGINT) USING delta $set")
    spark.range(0, ids, 1, 1).selectExpr("id", "id * 2 AS v")
      .write.format("delta").mode("append").save(path)
    path
  }

  /** All rows of a table with the columns `id` and `v`. */
  protected def rows(path: String): Seq[(Long, Long)] =
    spark.read.format("delta").load(path).collect()
      .map(row => (row.getAs[Long]("id"), row.getAs[Long]("v"))).toSeq.sorted
}
