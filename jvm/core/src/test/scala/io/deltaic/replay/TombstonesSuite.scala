package io.deltaic.replay

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, created, metadata}
import io.deltaic.protocol.TableProperties.intervalMs
import io.deltaic.protocol._

/** Protocol § Add File and Remove File: a tombstone stays until it has expired. */
class TombstonesSuite extends munit.FunSuite {

  private val now = System.currentTimeMillis
  private val dayMs = 86400000L

  private def kept(table: TableBuilder): Set[String] =
    table.open().latest().tombstones.map(_.path).toSet

  private def retention(text: String): Metadata =
    metadata.copy(configuration = Map("delta.deletedFileRetentionDuration" -> text))

  private def removed(ages: (String, Long)*): TableBuilder =
    created(ages.map(a => add(a._1)): _*).commit(1, ages.map(a => add(a._1).remove(now - a._2)): _*)

  // Protocol: add-file-and-remove-file-2, dv-tombstones-1
  test("tombstones are retained for a week, or for the table's retention duration") {
    val table = removed("new" -> 1, "days" -> 6 * dayMs, "old" -> 8 * dayMs)
    assertEquals(kept(table), Set("new", "days"))
    assertEquals(kept(table.commit(2, retention("interval 1 day"))), Set("new"))
    assertEquals(kept(table.commit(3, retention("interval 30 days"))), Set("new", "days", "old"))
    assertEquals(kept(table.commit(4, retention("interval 1 month"))), Set("new", "days", "old"))
  }

  test("a tombstone without a timestamp is expired") {
    val table = created(add("a")).commit(1, add("a").remove(now).copy(deletionTimestampMs = None))
    assertEquals(kept(table), Set.empty[String])
  }

  test("expired tombstones are dropped while a snapshot is updated incrementally") {
    val table = created()
    val log = table.open()
    log.latest()
    (1 to 30).foreach { version =>
      table.commit(version, (0 until 100).map(i => add(s"f$version-$i").remove(1)): _*)
      assert(log.latest().tombstones.size <= 1100, s"version $version")
    }
  }

  // Protocol: action-reconciliation-1, dv-action-reconciliation-changes-1, dv-action-reconciliation-changes-3
  test("a file that was added again has no tombstone, expired or not") {
    val table = removed("a" -> 8 * dayMs, "b" -> 1).commit(2, add("a"), add("b"))
    assertEquals(kept(table), Set.empty[String])
    assertEquals(table.open().latest().files.size, 2)
  }

  test("durations have Spark's syntax, with several units and without the word interval") {
    assertEquals(intervalMs("interval 1 week"), Some(7 * dayMs))
    assertEquals(intervalMs("INTERVAL 2 DAYS 3 hours"), Some(2 * dayMs + 3 * 3600000L))
    assertEquals(intervalMs("10 seconds"), Some(10000L))
    assertEquals(intervalMs("interval 86400000000 microseconds"), Some(dayMs))
    assertEquals(intervalMs("1.5 seconds -500999 microseconds"), Some(999L))
    assertEquals(intervalMs("interval 1.5 days"), None)
    assertEquals(intervalMs("interval 1 month"), None)
    assertEquals(intervalMs("soon"), None)
    assertEquals(intervalMs("interval -1 day"), None)
  }
}
