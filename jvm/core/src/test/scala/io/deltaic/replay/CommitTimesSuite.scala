package io.deltaic.replay

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{created, metadata}
import io.deltaic.protocol._

class CommitTimesSuite extends munit.FunSuite {

  private def commitInfo(inCommitTimeMs: Long): CommitInfo = {
    val json = ActionJson.mapper.createObjectNode()
    CommitInfo(json.put("operation", "WRITE").put("inCommitTimestamp", inCommitTimeMs))
  }

  private val withInCommit = Protocol(1, 7, None, Some(Set("inCommitTimestamp")))

  private def enabled(extra: (String, String)*): Metadata = metadata.copy(configuration =
    Map("delta.enableInCommitTimestamps" -> "true") ++ extra
  )

  /** Expects each timestamp to give its version. */
  private def check(table: TableBuilder)(expected: (Long, Long)*): Unit = {
    val log = table.open()
    expected.foreach { case (timeMs, version) =>
      assertEquals(log.versionAt(timeMs), version, s"at $timeMs")
    }
  }

  private def refused(table: TableBuilder, timeMs: Long): DeltaicThrowable = {
    val e = intercept[DeltaicThrowable](table.open().versionAt(timeMs))
    assertEquals("<[a-zA-Z]+>".r.findFirstIn(e.getMessage), None)
    e
  }

  test("a version is current from its time to that of the next") {
    val table = created().commit(1).commit(2)
    table.committedAt(0, 1000).committedAt(1, 2000).committedAt(2, 3000)
    check(table)(1000L -> 0, 1999L -> 0, 2000L -> 1, 2001L -> 1, 2999L -> 1, 3000L -> 2)
  }

  test("times that step back become one millisecond after the previous time") {
    val table = created().commit(1).commit(2).commit(3)
    table.committedAt(0, 5000).committedAt(1, 1000).committedAt(2, 5001).committedAt(3, 9000)
    check(table)(5000L -> 0, 5001L -> 1, 5002L -> 2, 8999L -> 2, 9000L -> 3)
    assertEquals(
      table.open().commitInfos(newestFirst = false).map(c => c._1 -> c._2).toList,
      List(0L -> 5000L, 1L -> 5001L, 2L -> 5002L, 3L -> 9000L)
    )
  }

  test("versionFrom returns the version at a time, or else the next one") {
    val table = created().commit(1).commit(2)
    table.committedAt(0, 1000).committedAt(1, 2000).committedAt(2, 3000)
    val log = table.open()
    Seq(0L -> 0L, 1000L -> 0L, 1001L -> 1L, 2000L -> 1L, 2999L -> 2L, 3000L -> 2L, 3001L -> 3L)
      .foreach { case (timeMs, version) => assertEquals(log.versionFrom(timeMs), version) }
  }

  test("commits of a range are in order with their times, and a missing one is an error") {
    val table = created().commit(1, commitInfo(7)).commit(2)
    table.committedAt(0, 1000).committedAt(1, 2000).committedAt(2, 2000)
    val found = table.open().commits(1, 2).map { case (commit, timeMs) => commit.version -> timeMs }
    assertEquals(found.toList, List(1L -> 2000L, 2L -> 2001L))
    val e = intercept[DeltaicThrowable](table.open().commits(2, 3).toList)
    assertEquals(e.condition, "DELTAIC_COMMIT_NOT_FOUND")
    assertEquals(e.parameters("version"), "3")
  }

  test("a time outside the range is refused, and the error has the range") {
    val table = created().commit(1)
    table.committedAt(0, 1000).committedAt(1, 2000)
    val before = refused(table, 999)
    assertEquals(before.condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
    assertEquals(before.parameters("versionTimestamp"), "1970-01-01T00:00:01Z")
    val after = refused(table, 2001)
    assertEquals(after.condition, "DELTAIC_TIMESTAMP_AFTER_LATEST")
    assertEquals(after.parameters("versionTimestamp"), "1970-01-01T00:00:02Z")
    assertEquals(after.parameters("earliestTimestamp"), "1970-01-01T00:00:01Z")
  }

  test("commits that do not reach a later checkpoint are only in history") {
    val table = TableBuilder()
    CheckpointRows.write(
      table,
      f"${5}%020d.checkpoint.parquet",
      CheckpointRows.schema(CheckpointRows.definitionColumns, CheckpointRows.plainAdd)
    )(CheckpointRows.protocolRow, CheckpointRows.metadataRow, CheckpointRows.addRow("x"))
    val log = table.open()
    assertEquals((log.latest().version, log.earliestVersion), (5L, 5L))
    assertEquals(log.commitInfos().toList, Nil)
    assertEquals(log.newestNotAfter(Long.MaxValue), None)
    Seq[() => Any](() => log.versionAt(1), () => log.versionFrom(1), () => log.commits(5, 5).toList)
      .foreach { ask =>
        val e = intercept[DeltaicThrowable] { ask(); () }
        assertEquals((e.condition, e.parameters("version")), ("DELTAIC_COMMIT_NOT_FOUND", "5"))
      }
    table.commit(2).commit(3)
    assertEquals(table.open().commitInfos().map(_._1).toList, List(3L, 2L))
    assertEquals(refused(table, 1).condition, "DELTAIC_COMMIT_NOT_FOUND")
    val continued = table.delete(f"${2}%020d.json").delete(f"${3}%020d.json").commit(6)
    assertEquals(continued.open().commitInfos().map(_._1).toList, List(6L))
  }

  test("in-commit timestamps from the first version on replace those of files") {
    val table = TableBuilder()
      .commit(0, commitInfo(100), withInCommit, enabled())
      .commit(1, commitInfo(200))
      .commit(2, commitInfo(300))
    table.committedAt(0, 9000).committedAt(1, 1000).committedAt(2, 5000)
    check(table)(100L -> 0, 199L -> 0, 200L -> 1, 299L -> 1, 300L -> 2)
    assertEquals(refused(table, 301).condition, "DELTAIC_TIMESTAMP_AFTER_LATEST")
    assertEquals(refused(table, 99).condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
    assertEquals(table.open().latest().timestampMs, 300L)
    assertEquals(table.open().commitInfos(limit = Some(2)).map(_._2).toList, List(300L, 200L))
  }

  test("if in-commit timestamps do not ascend, a time gives the newest version not after it") {
    val table = TableBuilder()
      .commit(0, commitInfo(900), withInCommit, enabled())
      .commit(1, commitInfo(100))
      .commit(2, commitInfo(901))
      .commit(3, commitInfo(902))
    check(table)(100L -> 1, 899L -> 1, 900L -> 1, 901L -> 2, 902L -> 3)
    assertEquals(refused(table, 99).condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
    // So cleanup never deletes, and a stream never skips, the newer version before the older one.
    assertEquals(table.open().newestNotAfter(100), None)
    assertEquals(table.open().versionFrom(100), 0L)
  }

  test("times resolve to versions below a gap that a checkpoint bridges, but not into the gap") {
    val table = created().commit(1).commit(2).commit(4).commit(6)
    CheckpointRows.write(
      table,
      f"${5}%020d.checkpoint.parquet",
      CheckpointRows.schema(CheckpointRows.definitionColumns, CheckpointRows.plainAdd)
    )(CheckpointRows.protocolRow, CheckpointRows.metadataRow, CheckpointRows.addRow("x"))
    Seq(0, 1, 2, 4, 6).foreach(v => table.committedAt(v, v * 1000L + 1000))
    check(table)(1000L -> 0, 2999L -> 1, 3000L -> 2, 7000L -> 6)
    val inGap = refused(table, 3001)
    assertEquals(inGap.condition, "DELTAIC_LOG_GAP")
    assertEquals(Seq("missing", "before", "after").map(inGap.parameters), Seq("3", "2", "4"))
    // Version 4 has a commit but cannot be reconstructed.
    assertEquals(refused(table, 5000).condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
    assertEquals(refused(table, 999).condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
  }

  /** Versions 2 and 3 have in-commit timestamps, 3000 and 4000. */
  private def enabledFromTwo(): TableBuilder = {
    val on = enabled(
      "delta.inCommitTimestampEnablementVersion" -> "2",
      "delta.inCommitTimestampEnablementTimestamp" -> "3000"
    )
    val table = created().commit(1).commit(2, commitInfo(3000), withInCommit, on)
    table.commit(3, commitInfo(4000))
  }

  test("versions before in-commit timestamps were enabled keep the times of their files") {
    val table = enabledFromTwo()
    table.committedAt(0, 1000).committedAt(1, 2000).committedAt(2, 100).committedAt(3, 200)
    check(table)(1000L -> 0, 2500L -> 1, 2999L -> 1, 3000L -> 2, 3999L -> 2, 4000L -> 3)
  }

  test("in-commit timestamps precede file times, which are younger in a copied log") {
    val table = enabledFromTwo()
    (0 to 3).foreach(v => table.committedAt(v, 90000))
    check(table)(3000L -> 2, 3999L -> 2, 4000L -> 3)
    assertEquals(table.open().versionFrom(3500), 3L)
    assertEquals(table.open().newestNotAfter(3500), Some(2L))
    assertEquals(refused(table, 2999).condition, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST")
  }
}
