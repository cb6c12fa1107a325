package io.deltaic.spark.sql.analysis.target

import java.util.{EnumSet, Set => JSet}

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.sources.{EqualTo, Filter}
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.DeltaicExtension

/** Statements on tables of other formats are executed by these formats. */
class RefuseOtherTargetsSuite extends munit.FunSuite {

  private class Deletable extends Table with SupportsRead with SupportsDelete {
    val deleted: ArrayBuffer[Filter] = ArrayBuffer.empty
    override def name(): String = "deletable"
    override def columns(): Array[Column] = Array(Column.create("id", LongType))
    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
      new Scan {
        override def readSchema(): StructType = new StructType().add("id", LongType)
      }
    override def deleteWhere(filters: Array[Filter]): Unit = deleted ++= filters
  }

  private def withView(table: Table)(test: SparkSession => Unit): Unit = {
    val spark = org.apache.spark.sql.SparkSession.builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.extensions", classOf[DeltaicExtension].getName)
      .getOrCreate()
      .asInstanceOf[SparkSession]
    try {
      val rows = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty)
      SessionInternals.run(spark, rows).createOrReplaceTempView("others")
      test(spark)
    } finally spark.stop()
  }

  Seq(
    "DELETE FROM others WHERE id = 1",
    "DELETE FROM others AS o WHERE o.id = 1",
    "WITH q AS (SELECT id FROM others) DELETE FROM q WHERE id = 1"
  ).foreach { statement =>
    test(s"a table that deletes rows itself does so: $statement") {
      val table = new Deletable
      withView(table) { spark =>
        spark.sql(statement)
        assert(table.deleted.contains(EqualTo("id", 1L)), table.deleted)
      }
    }
  }
}
