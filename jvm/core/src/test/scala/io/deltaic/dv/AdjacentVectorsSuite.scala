package io.deltaic.dv

import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path, RawLocalFileSystem}

import io.deltaic.dv.RowSets.{rowsOf, vector}
import io.deltaic.protocol.{DeletionVectorDescriptor, DeltaicThrowable}

/** Vectors that are read together are the same as when read separately, with fewer requests. */
class AdjacentVectorsSuite extends StoreFixture {

  private def counting: DeletionVectorStore = {
    val counted = new Configuration()
    counted.set("fs.file.impl", classOf[CountingFileSystem].getName)
    counted.setBoolean("fs.file.impl.disable.cache", true)
    CountingFileSystem.opened.set(0)
    new DeletionVectorStore(counted)
  }

  private def written(table: LocalPath, rows: Seq[Seq[Long]]): Seq[DeletionVectorDescriptor] = {
    val writer = store.newWriter(tablePath(table))
    try rows.map(r => writer.add(vector(r)))
    finally writer.close()
  }

  private def named(vectors: Seq[DeletionVectorDescriptor]) =
    vectors.zipWithIndex.map { case (v, i) => s"part-$i.parquet" -> v }

  // Protocol: dv-non-functional-4
  directory.test("adjacent vectors of a file are fetched by one read, in the requested order") {
    table =>
      val rows = (0 until 50).map(i => Seq.tabulate(i * 3 + 1)(r => r * 7L + i))
      val shuffled = Random.shuffle(written(table, rows).zip(rows))
      val store = counting
      val read = store.readAll(tablePath(table), named(shuffled.map(_._1)))
      assertEquals(read.map(v => rowsOf(v.get)), shuffled.map(_._2.toSeq))
      assertEquals(CountingFileSystem.opened.get, 1)
  }

  directory.test("each of several files is read once, and inline vectors need no read") {
    table =>
      val stored = (1L to 3L).map(i => written(table, Seq(Seq(i), Seq(i, 10L), Seq(i, 20L))))
      val inline = store.inline(vector(Seq(99L)))
      val wanted = stored.transpose.flatten :+ inline
      val store0 = counting
      val read = store0.readAll(tablePath(table), named(wanted)).map(v => rowsOf(v.get))
      assertEquals(read.take(3), Seq(Seq(1L), Seq(2L), Seq(3L)))
      assertEquals(read.last, Seq(99L))
      assertEquals(CountingFileSystem.opened.get, 3)
  }

  directory.test("vectors far apart are read one by one, without the bytes between them") { table =>
    // Rows that do not compress: the vector between the two is larger than the gap worth reading.
    val random = new Random(3)
    val large = Seq.fill(200000)(random.nextInt(Int.MaxValue).toLong).distinct.sorted
    val all = written(table, Seq(Seq(1L), large, Seq(3L)))
    assert(all(1).sizeBytes > AdjacentVectors.MaxGapBytes)
    val read = counting.readAll(tablePath(table), named(Seq(all.head, all.last)))
    assertEquals(read.map(v => rowsOf(v.get)), Seq(Seq(1L), Seq(3L)))
    assertEquals(CountingFileSystem.opened.get, 2)
  }

  directory.test("a damaged vector is an error of its own data file only") { table =>
    val all = written(table, (0 until 5).map(i => Seq(i.toLong, i + 100L)))
    val file = local(table, all.head)
    val bytes = Files.readAllBytes(file)
    val at = all(2).offset.get + 4 + all(2).sizeBytes - 1
    bytes(at) = (bytes(at) ^ 1).toByte
    overwrite(file, bytes)
    val read = store.readAll(tablePath(table), named(all))
    assertEquals(read.map(_.isSuccess), Seq(true, true, false, true, true))
    val error = read(2).failed.get.asInstanceOf[DeltaicThrowable]
    assertEquals(error.condition, "DELTAIC_DELETION_VECTOR_CORRUPT")
    assertEquals(error.parameters("dataFile"), "part-2.parquet")
  }

  directory.test(
    "a missing file is an error of each of its vectors, whatever the descriptors"
  ) {
    table =>
      val all = written(table, Seq(Seq(1L), Seq(2L)))
      Files.delete(local(table, all.head))
      val absurd = all.head.copy(sizeBytes = Int.MaxValue)
      val broken = all.head.copy(storageType = "z")
      val read = store.readAll(tablePath(table), named(all :+ absurd :+ broken))
      val conditions = read.map(_.failed.get.asInstanceOf[DeltaicThrowable].condition)
      assertEquals(conditions.take(2).distinct, Seq("DELTAIC_DELETION_VECTOR_FILE_MISSING"))
      assertEquals(conditions.last, "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID")
  }
}

/** The local file system, counting the files that are opened. */
final class CountingFileSystem extends RawLocalFileSystem {
  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    CountingFileSystem.opened.incrementAndGet()
    super.open(path, bufferSize)
  }
}

object CountingFileSystem {
  val opened = new AtomicInteger
}
