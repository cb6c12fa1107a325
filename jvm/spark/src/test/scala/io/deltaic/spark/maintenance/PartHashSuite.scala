package io.deltaic.spark.maintenance

import org.apache.spark.sql.catalyst.expressions.{Literal, Murmur3Hash}
import org.scalacheck.Prop.forAll

import io.deltaic.maintenance.PartHash

/** The parts of a checkpoint must use the hash of Spark's partitioning. */
class PartHashSuite extends munit.ScalaCheckSuite {

  private def bySpark(path: String, dvId: String, parts: Int): Int =
    Math.floorMod(
      Murmur3Hash(Seq(Literal.create(path), Literal.create(dvId)), 42).eval().asInstanceOf[Int],
      parts
    )

  // Protocol: multi-part-checkpoint-2
  property("a file is in the part that Spark would put it in") {
    forAll { (path: String, dvId: Option[String], parts: Byte) =>
      val count = (parts & 0x7f) + 1
      assertEquals(PartHash.part(path, dvId.orNull, count), bySpark(path, dvId.orNull, count))
    }
  }

  test("rows without a path are in Spark's partition of nulls") {
    assertEquals(PartHash.part(null, null, 1000), bySpark(null, null, 1000))
  }
}
