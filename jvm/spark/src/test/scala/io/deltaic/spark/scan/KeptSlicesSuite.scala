package io.deltaic.spark.scan

import java.nio.file.Files
import java.time.ZoneOffset

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Literal}

import io.deltaic.TableBuilder
import io.deltaic.protocol.AddFile
import io.deltaic.replay.{CheckpointSlice, DeltaLog, FileTable}
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics, StatsTable}

class KeptSlicesSuite extends munit.FunSuite {
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
    writeFile(table, classicName, (0 until 900).map(add), header = true, rowGroupBytes = 4096)
    val snapshot = new DeltaLog(table.path, table.conf, 0).latest()
    (table, snapshot.stored.get.slices)
  }

  private def read(kept: KeptSlices, slice: CheckpointSlice): Seq[FileTable] = {
    val found = mutable.Buffer.empty[FileTable]
    kept.files(slice, table.conf)(found += _)
    found.toSeq
  }

  /** As a query does that asks for a partition column. */
  private def decode(kept: KeptSlices, slice: CheckpointSlice): Unit = {
    val schema = TableSchema.of(table.path.toString, protocol, metadata).skipping
    val filter = EqualTo(StatsTable.attributes.find(_.name == "p").get, Literal("0"))
    kept.files(slice, table.conf) { files =>
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
    val all = new KeptSlices(Long.MaxValue, minute)
    read(all, slice)
    all.retainedBytes
  }

  private def keepingAll = new KeptSlices(Long.MaxValue, minute)

  test("slices are read once, and tell the files they hold") {
    assert(slices.size > 2, slices.size.toString)
    val kept = keepingAll
    val first = slices.map(read(kept, _))
    assertEquals(paths(first.flatten).sorted, (0 until 900).map(i => s"file-$i").sorted)
    slices.zip(first).foreach { case (slice, files) => assertSame(read(kept, slice), files) }
  }

  test("what a query decodes of a slice is counted, and there for the next query") {
    val kept = keepingAll
    val slice = slices.head
    read(kept, slice)
    val undecoded = kept.retainedBytes
    decode(kept, slice)
    val decoded = kept.retainedBytes
    assert(decoded > undecoded, s"$decoded, before $undecoded")
    assertEquals(read(kept, slice).map(_.retainedBytes).sum, decoded)
    decode(kept, slice)
    assertEquals(kept.retainedBytes, decoded)
  }

  test("of a slice that outgrows the room, what was decoded goes and the files stay") {
    val kept = new KeptSlices(bytesOf(slices.head) + 8, minute)
    val files = read(kept, slices.head)
    decode(kept, slices.head)
    assertEquals(kept.retainedBytes, bytesOf(slices.head))
    assertSame(read(kept, slices.head), files)
  }

  test("a slice for which there is no room is read each time, and moves no other") {
    val bytes = slices.map(bytesOf)
    val kept = new KeptSlices(bytes(0) + bytes(1) / 2, minute)
    val (first, second) = (read(kept, slices(0)), read(kept, slices(1)))
    assertEquals(kept.retainedBytes, bytes(0))
    assertSame(read(kept, slices(0)), first)
    val again = read(kept, slices(1))
    assert(!(again.head eq second.head))
    assertEquals(paths(again), paths(second))
    assertEquals(kept.retainedBytes, bytes(0))
  }

  test("tasks that read at the same time share the room") {
    val bytes = slices.map(bytesOf)
    val kept = new KeptSlices(bytes(0).max(bytes(1)), minute)
    kept.files(slices(0), table.conf)(_ => ())
    val both = new KeptSlices(bytes(0) + bytes(1) - 1, minute)
    // The second is read while the first one's batches are held.
    both.files(slices(0), table.conf)(_ => read(both, slices(1)): Unit)
    assert(both.retainedBytes <= bytes(0) + bytes(1) - 1)
    assert(both.retainedBytes > 0)
  }

  test("of two tasks that read the same slice, one keeps it") {
    val kept = keepingAll
    var inner = Seq.empty[FileTable]
    val outer = mutable.Buffer.empty[FileTable]
    kept.files(slices.head, table.conf) { files =>
      outer += files
      inner = read(kept, slices.head)
    }
    assertEquals(paths(inner), paths(outer.toSeq))
    assertSame(read(kept, slices.head), outer.toSeq)
  }

  test("a slice that nobody asks for leaves when another is asked for") {
    var now = 0L
    val kept = new KeptSlices(Long.MaxValue, minute, () => now)
    val first = read(kept, slices(0))
    now = minute
    read(kept, slices(1))
    assertSame(read(kept, slices(0)), first)
    now = 2 * minute + 1
    val third = read(kept, slices(2))
    assertEquals(kept.retainedBytes, bytesOf(slices(2)))
    assertSame(read(kept, slices(2)), third)
  }

  test("slices of an older checkpoint of the table leave, those of other tables stay") {
    val kept = keepingAll
    val other = slices(1).copy(table = "file:/other")
    Seq(slices(0), other).foreach(read(kept, _))
    val newer = slices(2).copy(version = slices(2).version + 1)
    read(kept, newer)
    assertEquals(kept.retainedBytes, bytesOf(other) + bytesOf(newer))
  }

  test("a slice of a file that was written anew is another") {
    val kept = keepingAll
    val before = read(kept, slices.head)
    val other = slices.head.copy(modificationTimeMs = slices.head.modificationTimeMs + 1)
    assert(!(read(kept, other).head eq before.head))
  }

  test("a visitor that fails leaves things as they were") {
    val kept = keepingAll
    def fail(): Unit = intercept[IllegalStateException] {
      kept.files(slices.head, table.conf)(_ => throw new IllegalStateException("no"))
    }: Unit
    fail()
    assertEquals(kept.retainedBytes, 0L)
    val files = read(kept, slices.head)
    fail()
    assertSame(read(kept, slices.head), files)
  }

  override def afterAll(): Unit =
    Files.walk(table.directory).sorted(java.util.Comparator.reverseOrder()).forEach(Files.delete(_))
}
