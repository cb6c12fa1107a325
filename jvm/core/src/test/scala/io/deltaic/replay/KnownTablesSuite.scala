package io.deltaic.replay

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, created}

/** Which tables are held, and which are forgotten for want of room. */
class KnownTablesSuite extends munit.FunSuite {

  private def held(tables: Seq[TableBuilder]): Map[TableBuilder, Long] =
    tables.map(t => t -> DeltaLog.tables.retainedBytes.getOrElse(s"file:${t.directory}", 0L)).toMap
      .filter(_._2 > 0)

  private def keeping[A](bytes: Long)(body: => A): A = {
    val before = DeltaLog.tables.bytesKept
    DeltaLog.tables.bytesKept = bytes
    try body
    finally DeltaLog.tables.bytesKept = before
  }

  test(
    "of the tables held those go first that were asked for longest ago, once they take too much"
  ) {
    def thousand = created((0 until 1000).map(i => add(s"file-$i")): _*)
    val (a, b, c, d) = (thousand, thousand, thousand, thousand)
    val tables = Seq(a, b, c, d)
    def log(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf)
    Seq(a, b, c).foreach(log(_).latest())
    assertEquals(held(tables).keySet, Set(a, b, c))
    log(a)
    val bytes = held(tables).values.max
    keeping(3 * bytes + bytes / 2)(log(d).latest())
    assertEquals(held(tables).keySet, Set(a, c, d))
    // What was asked for just now stays, however large.
    a.commit(1, add("new"))
    keeping(0)(log(a).latest())
    assertEquals(held(tables).keySet, Set(a))
    // So does what a commit has led to.
    log(b).latest()
    b.commit(1, add("new"))
    keeping(0)(assert(log(b).afterCommit(1).isDefined))
    assertEquals(held(tables).keySet, Set(b))
    keeping(0)(log(a).latest())
    // Not so what time travel has led to.
    keeping(0)(log(b).at(0))
    assertEquals(held(tables).keySet, Set.empty[TableBuilder])
  }

  test("what was made of a table's files counts for what may be held, too") {
    val tables = Seq.fill(2)(created((0 until 1000).map(i => add(s"file-$i")): _*))
    def latest(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf).latest()
    val (first, second) = (latest(tables(0)), latest(tables(1)))
    assertEquals(held(tables).keySet, tables.toSet)
    val room = first.retainedBytes + second.retainedBytes + 1000
    keeping(room) {
      latest(tables(1))
      assertEquals(held(tables).keySet, tables.toSet)
      val before = first.retainedBytes
      first.filesInMemory.blocks.foreach(_.derive(KnownTablesSuite.Heavy))
      assert(first.retainedBytes > room)
      latest(tables(1))
      // It goes first, the table it was made of only where that is not enough.
      assertEquals(first.retainedBytes, before)
      assertEquals(held(tables).keySet, tables.toSet)
      second.filesInMemory.blocks.foreach(_.derive(KnownTablesSuite.Heavy))
      latest(tables(1))
    }
    assertEquals(held(tables).keySet, Set(tables(1)))
  }

  test("what was made of a table's files stays where that of tables asked for before is enough") {
    val tables = Seq.fill(3)(created((0 until 1000).map(i => add(s"file-$i")): _*))
    def latest(table: TableBuilder) = DeltaLog.forTable(table.path, table.conf).latest()
    val snapshots = tables.map(latest)
    val before = snapshots.map(_.retainedBytes)
    snapshots.take(2).foreach(_.filesInMemory.blocks.foreach(_.derive(KnownTablesSuite.Heavy)))
    val after = snapshots.map(_.retainedBytes)
    assert(after(0) > before(0) && after(1) > before(1))
    keeping(after.sum - 1000)(latest(tables(2)))
    assertEquals(snapshots.map(_.retainedBytes), Seq(before(0), after(1), after(2)))
    assertEquals(held(tables).keySet, tables.toSet)
  }

  test("hundreds of small tables are held") {
    val tables = Seq.fill(100)(created(add("a")))
    tables.foreach(t => DeltaLog.forTable(t.path, t.conf).latest())
    assertEquals(held(tables).keySet, tables.toSet)
  }

  test("of more tables than may be held, those go first that were asked for longest ago") {
    val tables = new KnownTables(tablesKept = 2)
    Seq("a", "b", "a", "c").foreach(tables.of)
    assertEquals(tables.retainedBytes.keySet, Set("a", "c"))
  }
}

private object KnownTablesSuite {

  /** What takes as much as it is said to. */
  object Heavy extends FileBlock.Derivation[FileBlock.Derived] {
    override def of(block: FileBlock): FileBlock.Derived = new FileBlock.Derived {
      override def retainedBytes: Long = 1000000L
    }
  }
}
