package io.deltaic.replay

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, created}

/** Which tables stay cached, and which are evicted. */
class SnapshotCacheSuite extends munit.FunSuite {

  private def cached(tables: Seq[TableBuilder]): Map[TableBuilder, Long] =
    tables.map(t => t -> DeltaLog.tables.retainedBytes.getOrElse(s"file:${t.directory}", 0L)).toMap
      .filter(_._2 > 0)

  private def keeping[A](bytes: Long)(body: => A): A = {
    val before = DeltaLog.tables.maxBytes
    DeltaLog.tables.maxBytes = bytes
    try body
    finally DeltaLog.tables.maxBytes = before
  }

  test(
    "the least recently used tables are evicted first when the cache exceeds its size"
  ) {
    def thousand = created((0 until 1000).map(i => add(s"file-$i")): _*)
    val (a, b, c, d) = (thousand, thousand, thousand, thousand)
    val tables = Seq(a, b, c, d)
    def log(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf)
    Seq(a, b, c).foreach(log(_).latest())
    assertEquals(cached(tables).keySet, Set(a, b, c))
    log(a)
    val bytes = cached(tables).values.max
    keeping(3 * bytes + bytes / 2)(log(d).latest())
    assertEquals(cached(tables).keySet, Set(a, c, d))
    // The table that was just read stays, however large.
    a.commit(1, add("new"))
    keeping(0)(log(a).latest())
    assertEquals(cached(tables).keySet, Set(a))
    // So does the snapshot after a commit.
    log(b).latest()
    b.commit(1, add("new"))
    keeping(0)(assert(log(b).afterCommit(1).isDefined))
    assertEquals(cached(tables).keySet, Set(b))
    keeping(0)(log(a).latest())
    // The snapshot of a time travel does not.
    keeping(0)(log(b).at(0))
    assertEquals(cached(tables).keySet, Set.empty[TableBuilder])
  }

  test("data derived from a table's files counts towards the size of the cache") {
    val tables = Seq.fill(2)(created((0 until 1000).map(i => add(s"file-$i")): _*))
    def latest(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf).latest()
    val (first, second) = (latest(tables(0)), latest(tables(1)))
    assertEquals(cached(tables).keySet, tables.toSet)
    val room = first.retainedBytes + second.retainedBytes + 1000
    keeping(room) {
      latest(tables(1))
      assertEquals(cached(tables).keySet, tables.toSet)
      val before = first.retainedBytes
      first.filesInMemory.blocks.foreach(_.derive(SnapshotCacheSuite.Heavy))
      assert(first.retainedBytes > room)
      latest(tables(1))
      // It is evicted first, and its table only if that is not enough.
      assertEquals(first.retainedBytes, before)
      assertEquals(cached(tables).keySet, tables.toSet)
      second.filesInMemory.blocks.foreach(_.derive(SnapshotCacheSuite.Heavy))
      latest(tables(1))
    }
    assertEquals(cached(tables).keySet, Set(tables(1)))
  }

  test("derived data stays if evicting that of less recently used tables is enough") {
    val tables = Seq.fill(3)(created((0 until 1000).map(i => add(s"file-$i")): _*))
    def latest(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf).latest()
    val snapshots = tables.map(latest)
    val before = snapshots.map(_.retainedBytes)
    snapshots.take(2).foreach(_.filesInMemory.blocks.foreach(_.derive(SnapshotCacheSuite.Heavy)))
    val after = snapshots.map(_.retainedBytes)
    assert(after(0) > before(0) && after(1) > before(1))
    keeping(after.sum - 1000)(latest(tables(2)))
    assertEquals(snapshots.map(_.retainedBytes), Seq(before(0), after(1), after(2)))
    assertEquals(cached(tables).keySet, tables.toSet)
  }

  test("hundreds of small tables stay cached") {
    val tables = Seq.fill(100)(created(add("a")))
    tables.foreach(t => DeltaLog.forTable(t.path, t.conf).latest())
    assertEquals(cached(tables).keySet, tables.toSet)
  }

  test("the least recently used tables are evicted when there are too many") {
    val tables = new SnapshotCache(maxTables = 2)
    Seq("a", "b", "a", "c").foreach(tables.of)
    assertEquals(tables.retainedBytes.keySet, Set("a", "c"))
  }
}

private object SnapshotCacheSuite {

  /** Derived data of a given size. */
  object Heavy extends FileBlock.Derivation[FileBlock.Derived] {
    override def of(block: FileBlock): FileBlock.Derived = new FileBlock.Derived {
      override def retainedBytes: Long = 1000000L
    }
  }
}
