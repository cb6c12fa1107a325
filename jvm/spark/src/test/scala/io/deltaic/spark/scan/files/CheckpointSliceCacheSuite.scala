package io.deltaic.spark.scan.files

import java.nio.file.Files
import java.time.ZoneOffset

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Literal}

import io.deltaic.TableBuilder
import io.deltaic.protocol.AddFile
import io.deltaic.replay.{CheckpointSlice, DeltaLog, FileTable}
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics, StatsTable}

class CheckpointSliceCacheSuite extends munit.FunSuite {
  import DistributedFilesSuite._

  private val minute = 60L * 1000 * 1000 * 1000

  private def add(i: Int): AddFile = AddFile(
    s"file-$i",
    Map("x_p" -> (i % 3).toString, "x_q" -> null),
    10,
    0,
    dataChange = true,
    stats = Some(s"""{"numRecords":$i}""")
  )

  /** A checkpoint of several slices. */
  private val (table, slices) = {
    val table = TableBuilder().commit(0, protocol, metadata)
    writeFile(
      table,
      classicName,
      (0 until 900).map(add),
      withDefinition = true,
      rowGroupBytes = 4096
    )
    val snapshot = new DeltaLog(table.path, table.conf, 0).latest()
    (table, snapshot.stored.get.slices)
  }

  private def read(cache: CheckpointSliceCache, slice: CheckpointSlice): Seq[FileTable] = {
    val found = mutable.Buffer.empty[FileTable]
    cache.files(slice, table.conf)(found += _)
    found.toSeq
  }

  /** Decodes a partition column, as a query does. */
  private def decode(cache: CheckpointSliceCache, slice: CheckpointSlice): Unit = {
    val schema = TableSchema.of(table.path.toString, protocol, metadata).skipping
    val filter = EqualTo(StatsTable.attributes.find(_.name == "p").get, Literal("0"))
    cache.files(slice, table.conf) { files =>
      val statistics = SnapshotStatistics.of(files, schema, ZoneOffset.UTC)
      assert(FileSelection.select(statistics, Seq(filter)).files.length < files.size)
    }
  }

  private def assertSame(found: Seq[FileTable], expected: Seq[FileTable]): Unit = {
    assertEquals(found.size, expected.size)
    found.zip(expected).foreach { case (now, before) => assert(now eq before) }
  }

  private def paths(files: Seq[FileTable]): Seq[String] =
    files.flatMap(f => (0 until f.size).map(f.path))

  private def bytesOf(slice: CheckpointSlice): Long = {
    val all = new CheckpointSliceCache(Long.MaxValue, minute)
    read(all, slice)
    all.retainedBytes
  }

  private def unbounded = new CheckpointSliceCache(Long.MaxValue, minute)

  test("slices are read once and return their files") {
    assert(slices.size > 2, slices.size.toString)
    val cache = unbounded
    val first = slices.map(read(cache, _))
    assertEquals(paths(first.flatten).sorted, (0 until 900).map(i => s"file-$i").sorted)
    slices.zip(first).foreach { case (slice, files) => assertSame(read(cache, slice), files) }
  }

  test("values that a query decodes are included in the size and cached for the next query") {
    val cache = unbounded
    val slice = slices.head
    read(cache, slice)
    val undecoded = cache.retainedBytes
    decode(cache, slice)
    val decoded = cache.retainedBytes
    assert(decoded > undecoded, s"$decoded, before $undecoded")
    assertEquals(read(cache, slice).map(_.retainedBytes).sum, decoded)
    decode(cache, slice)
    assertEquals(cache.retainedBytes, decoded)
  }

  test("a slice that outgrows the cache loses its decoded values and keeps its files") {
    val cache = new CheckpointSliceCache(bytesOf(slices.head) + 8, minute)
    val files = read(cache, slices.head)
    decode(cache, slices.head)
    assertEquals(cache.retainedBytes, bytesOf(slices.head))
    assertSame(read(cache, slices.head), files)
  }

  test("a slice that does not fit is read each time and evicts no other") {
    val bytes = slices.map(bytesOf)
    val cache = new CheckpointSliceCache(bytes(0) + bytes(1) / 2, minute)
    val (first, second) = (read(cache, slices(0)), read(cache, slices(1)))
    assertEquals(cache.retainedBytes, bytes(0))
    assertSame(read(cache, slices(0)), first)
    val again = read(cache, slices(1))
    assert(!(again.head eq second.head))
    assertEquals(paths(again), paths(second))
    assertEquals(cache.retainedBytes, bytes(0))
  }

  test("concurrent tasks share the capacity") {
    val bytes = slices.map(bytesOf)
    val cache = new CheckpointSliceCache(bytes(0).max(bytes(1)), minute)
    cache.files(slices(0), table.conf)(_ => ())
    val both = new CheckpointSliceCache(bytes(0) + bytes(1) - 1, minute)
    // The second is read while the first one's batches are held.
    both.files(slices(0), table.conf)(_ => read(both, slices(1)): Unit)
    assert(both.retainedBytes <= bytes(0) + bytes(1) - 1)
    assert(both.retainedBytes > 0)
  }

  test("if two tasks read the same slice, one caches it") {
    val cache = unbounded
    var inner = Seq.empty[FileTable]
    val outer = mutable.Buffer.empty[FileTable]
    cache.files(slices.head, table.conf) { files =>
      outer += files
      inner = read(cache, slices.head)
    }
    assertEquals(paths(inner), paths(outer.toSeq))
    assertSame(read(cache, slices.head), outer.toSeq)
  }

  test("an unused slice is evicted when another is requested") {
    var now = 0L
    val cache = new CheckpointSliceCache(Long.MaxValue, minute, () => now)
    val first = read(cache, slices(0))
    now = minute
    read(cache, slices(1))
    assertSame(read(cache, slices(0)), first)
    now = 2 * minute + 1
    val third = read(cache, slices(2))
    assertEquals(cache.retainedBytes, bytesOf(slices(2)))
    assertSame(read(cache, slices(2)), third)
  }

  test("slices of an older checkpoint of the table are evicted, those of other tables stay") {
    val cache = unbounded
    val other = slices(1).copy(table = "file:/other")
    Seq(slices(0), other).foreach(read(cache, _))
    val newer = slices(2).copy(version = slices(2).version + 1)
    read(cache, newer)
    assertEquals(cache.retainedBytes, bytesOf(other) + bytesOf(newer))
  }

  test("a slice of a rewritten file is a different slice") {
    val cache = unbounded
    val before = read(cache, slices.head)
    val other = slices.head.copy(modificationTimeMs = slices.head.modificationTimeMs + 1)
    assert(!(read(cache, other).head eq before.head))
  }

  test("a visitor that fails does not change the cache") {
    val cache = unbounded
    def fail(): Unit = intercept[IllegalStateException] {
      cache.files(slices.head, table.conf)(_ => throw new IllegalStateException("no"))
    }: Unit
    fail()
    assertEquals(cache.retainedBytes, 0L)
    val files = read(cache, slices.head)
    fail()
    assertSame(read(cache, slices.head), files)
  }

  override def afterAll(): Unit =
    Files.walk(table.directory).sorted(java.util.Comparator.reverseOrder()).forEach(Files.delete(_))
}
