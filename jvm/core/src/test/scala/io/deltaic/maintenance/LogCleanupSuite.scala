package io.deltaic.maintenance

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}

import scala.util.Random

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol._

/** Protocol § Metadata Cleanup. Days are counted back from today: version `v` was committed `age(v)` days ago. */
class LogCleanupSuite extends munit.FunSuite {
  import MaintenanceFixture._
  import MaintenanceTask._

  private val day = 86400000L

  /** A minute before midnight UTC, this many days ago. */
  private def daysAgo(days: Double): Long = {
    val midnight = System.currentTimeMillis / day * day
    midnight - (days * day).toLong + 60000
  }

  private def commitName(version: Long): String = f"$version%020d.json"
  private def checkpointName(version: Long): String = f"$version%020d.checkpoint.parquet"

  private def touch(table: TableBuilder, name: String, timeMs: Long): LocalPath =
    Files.setLastModifiedTime(table.log.resolve(name), FileTime.fromMillis(timeMs))

  /** A table of `versions` commits, one per day up to today, with classic checkpoints at some versions. */
  private def daily(versions: Int, checkpointed: Long*): TableBuilder = {
    val table = TableBuilder()
    (0 until versions).foreach { v =>
      val actions = if (v == 0) Seq(TableBuilder.protocol, TableBuilder.metadata) else Nil
      table.commit(v.toLong, actions :+ add(s"f$v"): _*)
      if (checkpointed.contains(v.toLong)) run(table, v.toLong, ClassicCheckpoint(None))
    }
    age(table, versions)
    table
  }

  private def age(table: TableBuilder, versions: Int): Unit =
    (0 until versions).foreach { v =>
      table.committedAt(v.toLong, daysAgo((versions - 1 - v).toDouble))
    }

  private def clean(table: TableBuilder, newest: Long, days: Long): Maintenance = {
    MaintenanceState.forget(table.open().table)
    run(table, newest, Cleanup(days * day))
  }

  private def commits(table: TableBuilder): Seq[Long] =
    names(table).filter(_.matches("\\d{20}\\.json")).map(_.take(20).toLong)

  // Protocol: file-types-checkpoints-4
  test("files before the newest checkpoint that is not newer than the cutoff are deleted") {
    val table = daily(30, 5, 10, 15, 20)
    table.file(f"${8}%020d.crc", "{}").file(f"${12}%020d.crc", "{}")
    table.file(f"${7}%020d.${9}%020d.compacted.json", "{}")
    table.file(f"${10}%020d.${12}%020d.compacted.json", "{}")
    table.file(f"${11}%020d.${12}%020d.compacted.json", "{}")
    table.file("notes.txt", "mine")
    val expected = latest(table)
    // Version 12 was committed 17 days ago, a minute past midnight, so version 11 is the cutoff of 17 days.
    assertEquals(clean(table, 29, 17).failed, Set.empty[String])
    assertEquals(commits(table), (10L until 30L).toVector)
    assertEquals(checkpoints(table), Seq(10L, 15L, 20L).map(checkpointName))
    assertEquals(names(table).filter(_.endsWith(".crc")), Seq(f"${12}%020d.crc"))
    assertEquals(
      names(table).filter(_.contains("compacted")),
      Seq(f"${11}%020d.${12}%020d.compacted.json")
    )
    assert(names(table).contains("notes.txt"))
    assertEquals(latest(table), expected)
    assertEquals(table.open().earliestVersion, 10L)
  }

  test("a commit exactly at midnight is an acceptable cutoff") {
    val table = daily(10, 4)
    table.committedAt(4, daysAgo(5) - 60000)
    (0 until 4).foreach(v => table.committedAt(v.toLong, daysAgo(9.0 - v)))
    clean(table, 9, 5)
    assertEquals(commits(table).head, 4L)
  }

  // Protocol: file-types-checkpoints-4
  test("without a checkpoint before the cutoff nothing is deleted") {
    val table = daily(30, 20)
    clean(table, 29, 15)
    assertEquals(commits(table).size, 30)
  }

  test(
    "nothing is deleted during the retention, and all but the newest checkpoint after it"
  ) {
    val table = daily(12, 10)
    clean(table, 11, 30)
    assertEquals(commits(table).size, 12)
    (0 until 12).foreach(v => table.committedAt(v.toLong, daysAgo(100.0 - v)))
    clean(table, 11, 30)
    assertEquals(commits(table), Seq(10L, 11L))
  }

  // Protocol: file-types-checkpoints-4
  test("a damaged checkpoint does not replace the commits before it") {
    val table = daily(30, 5, 10)
    table.file(checkpointName(10), "PAR1 damaged")
    val expected = latest(table)
    clean(table, 29, 5)
    assertEquals(commits(table).head, 5L)
    assertEquals(latest(table), expected)
  }

  // Protocol: file-types-checkpoints-6
  test("a multi-part checkpoint with a missing part does not replace commits") {
    val table = daily(30, 5)
    table.file(f"${10}%020d.checkpoint.${1}%010d.${2}%010d.parquet", "x")
    clean(table, 29, 5)
    assertEquals(commits(table).head, 5L)
  }

  test("a V2 checkpoint with a missing sidecar does not replace commits") {
    val table = daily(30, 5)
    run(table, 10, V2Checkpoint(100, alsoClassic = false))
    MaintenanceState.forget(table.open().table)
    val sidecar =
      table.log.resolve("_sidecars").toFile.listFiles.find(_.getName.startsWith("0")).get
    assert(sidecar.delete())
    clean(table, 29, 5)
    assertEquals(commits(table).head, 5L)
  }

  test("in-commit timestamps determine the cutoff if they are enabled") {
    val features = Some(Set("inCommitTimestamp"))
    val table = TableBuilder()
    def info(v: Int): CommitInfo = {
      val json = ActionJson.mapper.createObjectNode()
      CommitInfo(json.put("inCommitTimestamp", daysAgo(9.0 - v)).put("operation", "WRITE"))
    }
    val dated = TableBuilder.metadata.copy(configuration =
      Map("delta.enableInCommitTimestamps" -> "true")
    )
    (0 until 10).foreach { v =>
      val protocolAndMetadata =
        if (v == 0) Seq(Protocol(1, 7, None, features), dated) else Seq.empty[Action]
      table.commit(v.toLong, (info(v) +: protocolAndMetadata) :+ add(s"f$v"): _*)
      if (v == 4 || v == 6) run(table, v.toLong, ClassicCheckpoint(None))
    }
    clean(table, 9, 4)
    assertEquals(commits(table).head, 4L)
  }

  test("a sidecar that a checkpoint references by an encoded path stays") {
    val table = daily(30)
    run(table, 20, V2Checkpoint(100, alsoClassic = false))
    val sidecars = table.log.resolve("_sidecars")
    val written = sidecars.toFile.listFiles.find(_.getName.matches("\\d.*\\.parquet")).get.toPath
    Files.move(written, sidecars.resolve("t%wo.parquet"))
    table.log.toFile.listFiles.filter(_.getName.contains("checkpoint")).foreach(_.delete())
    val actions = Seq(
      CheckpointMetadata(20),
      Sidecar("t%25wo.parquet", 1, 1),
      TableBuilder.metadata,
      TableBuilder.protocol
    )
    val name = "00000000000000000020.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    table.file(name, actions.map(ActionJson.write).mkString("\n"))
    Files.writeString(sidecars.resolve("old.parquet"), "x")
    Seq("old", "t%wo").foreach(n => touch(table, s"_sidecars/$n.parquet", daysAgo(3)))
    val expected = latest(table)
    clean(table, 29, 5)
    assertEquals(commits(table).head, 20L)
    assertEquals(sidecars.toFile.list.toSet.filter(_.endsWith(".parquet")), Set("t%wo.parquet"))
    assertEquals(latest(table), expected)
  }

  test("only unreferenced sidecars older than a day are deleted") {
    val table = daily(30)
    run(table, 20, V2Checkpoint(8, alsoClassic = false))
    run(table, 25, V2Checkpoint(8, alsoClassic = false))
    val sidecars = table.log.resolve("_sidecars")
    val named = sidecars.toFile.list.toSet.filter(_.endsWith(".parquet"))
    Seq("old", "young").foreach(n => Files.writeString(sidecars.resolve(s"$n.parquet"), "x"))
    (named + "old.parquet").foreach(n => touch(table, s"_sidecars/$n", daysAgo(3)))
    val expected = latest(table)
    clean(table, 29, 100)
    assertEquals(
      sidecars.toFile.list.toSet.filter(_.endsWith(".parquet")),
      named + "young.parquet"
    )
    assertEquals(latest(table), expected)
    touch(table, "_sidecars/young.parquet", daysAgo(3))
    // An unreadable checkpoint may reference any of them.
    table.file(f"${27}%020d.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", "damaged")
    clean(table, 29, 100)
    assert(Files.exists(sidecars.resolve("young.parquet")))
  }

  test("temporary files of crashed writers are deleted after a day") {
    val table = daily(3)
    Seq("old", "young").foreach(n => table.file(s".${commitName(1)}.$n.tmp", "x"))
    touch(table, s".${commitName(1)}.old.tmp", daysAgo(3))
    clean(table, 2, 100)
    assertEquals(names(table).filter(_.endsWith(".tmp")), Seq(s".${commitName(1)}.young.tmp"))
  }

  test("the log before a protected version is deleted all at once or not at all") {
    def left(protectedVersion: Long, days: Long): Seq[Long] = {
      val table = daily(30, 5, 10, 15, 20)
      val expected = latest(table)
      MaintenanceState.forget(table.open().table)
      run(table, 29, Cleanup(days * day, protectedVersion))
      assertEquals(latest(table), expected)
      commits(table)
    }
    val all = (0L until 30L).toVector
    // The checkpoint of version 10 is the newest that is old enough.
    assertEquals(left(protectedVersion = 11, days = 17), all)
    assertEquals(left(protectedVersion = 29, days = 5), all)
    assertEquals(left(protectedVersion = 10, days = 17), (10L until 30L).toVector)
    assertEquals(left(protectedVersion = 7, days = 17), (10L until 30L).toVector)
  }

  test("the log is cleaned up once a day") {
    val table = daily(30, 10)
    clean(table, 29, 25)
    assertEquals(commits(table).size, 30)
    run(table, 29, Cleanup(25 * day))
    run(table, 29, Cleanup(5 * day))
    assertEquals(commits(table).head, 10L)
  }

  (1 to 4).foreach { seed =>
    // Protocol: checkpoint-schema-3, file-types-checkpoints-2
    test(s"every remaining version reads as before (seed $seed)") {
      val random = new Random(seed)
      val table = TableBuilder()
      var present = Set.empty[String]
      val versions = 40
      (0 until versions).foreach { v =>
        val protocolAndMetadata =
          if (v == 0) Seq(TableBuilder.protocol, TableBuilder.metadata) else Nil
        val removed = random.shuffle(present.toSeq).take(random.nextInt(2))
        val added = (0 until random.nextInt(3)).map(i => s"f$v-$i")
        present = present -- removed ++ added
        val actions = protocolAndMetadata ++ removed.map(remove(_)) ++ added.map(add(_))
        table.commit(v.toLong, actions: _*)
        MaintenanceState.forget(table.open().table)
        if (random.nextInt(4) == 0) {
          val task = random.nextInt(3) match {
            case 0 => ClassicCheckpoint(None)
            case 1 => ClassicCheckpoint(Some(5))
            case _ => V2Checkpoint(4, random.nextBoolean())
          }
          run(table, v.toLong, task)
        }
        if (v > 5 && random.nextInt(5) == 0) run(table, v.toLong, Compaction(v - 4L, v.toLong))
      }
      age(table, versions)
      // A checkpoint has only tombstones that were unexpired when it was written; all of these are.
      val before = (0 until versions).map(v => v -> state(table.open().at(v.toLong))).toMap
      clean(table, versions - 1L, 1L + random.nextInt(30))
      val log = table.open()
      val earliest = log.earliestVersion.toInt
      assert(earliest <= versions - 1)
      (earliest until versions).foreach { v =>
        assertEquals(state(table.open().at(v.toLong)), before(v), s"version $v of $earliest on")
      }
    }
  }
}
