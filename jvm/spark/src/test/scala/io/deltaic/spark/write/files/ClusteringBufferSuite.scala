package io.deltaic.spark.write.files

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class ClusteringBufferSuite extends munit.FunSuite {

  private val schema =
    new StructType().add("id", IntegerType).add("a", IntegerType).add("s", StringType)
  private val toUnsafe = UnsafeProjection.create(schema)

  private def row(id: Int, a: Any): InternalRow =
    new GenericInternalRow(Array[Any](id, a, UTF8String.fromString(f"${id % 97}%03d")))

  /** The rows as they are written, as values. */
  private def written(
      columns: Seq[Seq[String]],
      bufferBytes: Long,
      rows: Seq[InternalRow]
  ): Seq[(Int, Option[Int], String)] = {
    val found = mutable.ArrayBuffer.empty[(Int, Option[Int], String)]
    val clustered = new ClusteringBuffer(
      columns,
      schema,
      row => {
        val a = Option.unless(row.isNullAt(1))(row.getInt(1))
        found += ((row.getInt(0), a, row.getUTF8String(2).toString))
      },
      bufferBytes
    )
    rows.foreach(clustered.add)
    clustered.flush()
    clustered.flush()
    found.toSeq
  }

  private def values(rows: Seq[InternalRow]): Seq[(Int, Option[Int], String)] = rows.map { row =>
    val a = Option.unless(row.isNullAt(1))(row.getInt(1))
    (row.getInt(0), a, row.getUTF8String(2).toString)
  }

  test("each row is written once, from rows that are reused, in buffers of any size") {
    val random = new Random(1)
    for (numRows <- Seq(0, 1, 2, 1000); bytes <- Seq(1L, 500L, 1L << 20)) {
      val rows =
        Seq.tabulate(numRows)(row(_, if (random.nextInt(5) == 0) null else random.nextInt(50)))
      val found = written(Seq(Seq("a"), Seq("s")), bytes, rows)
      assertEquals(found.sorted, values(rows).sorted)
      // The projection returns the same row each time.
      assertEquals(
        writtenReused(rows, bytes).sorted,
        values(rows).sorted
      )
    }
  }

  private def writtenReused(
      rows: Seq[InternalRow],
      bytes: Long
  ): Seq[(Int, Option[Int], String)] = {
    val found = mutable.ArrayBuffer.empty[InternalRow]
    val clustered =
      new ClusteringBuffer(
        Seq(Seq("s")),
        schema,
        r => found += r.asInstanceOf[UnsafeRow].copy(),
        bytes
      )
    rows.foreach(row => clustered.add(toUnsafe(row)))
    clustered.flush()
    values(found.toSeq)
  }

  test("one column orders each buffer, nulls first") {
    val rows = new Random(2).shuffle((0 until 3000).map(i => row(i, if (i < 100) null else i)))
    val found = written(Seq(Seq("a")), 1L << 20, rows).map(_._2)
    assertEquals(found, Seq.fill(100)(None) ++ (100 until 3000).map(Some(_)))
    // A row has 40 bytes, and takes 120 in memory.
    val halves =
      written(Seq(Seq("a")), 120 * 1500, rows).map(_._2.getOrElse(-1)).grouped(1500).toSeq
    assertEquals(halves.size, 2)
    halves.foreach(half => assertEquals(half, half.sorted))
  }

  test("a window of rows is narrow in both columns") {
    val random = new Random(3)
    val rows = Seq.tabulate(8192)(row(_, random.nextInt(10000)))
    val windows = written(Seq(Seq("a"), Seq("s")), 1L << 30, rows).grouped(128).toSeq
    val width = windows.map { window =>
      val (a, s) = (window.flatMap(_._2), window.map(_._3.toInt))
      (a.max - a.min) / 10000.0 * (s.max - s.min) / 97.0
    }.sum / windows.size
    // 64 windows of a grid are an eighth wide each way; a few are longer one way.
    assert(width < 0.05, width)
  }
}
