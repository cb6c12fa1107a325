package io.deltaic.maintenance

import java.nio.file.Files

import org.apache.hadoop.fs.FileUtil

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv}
import io.deltaic.protocol._

/** Version checksums and log compactions. */
class LogFilesSuite extends munit.FunSuite {
  import MaintenanceFixture._

  private def checksum(table: TableBuilder, version: Long): Fields =
    new Fields(Files.readString(table.log.resolve(f"$version%020d.crc")))

  private final class Fields(text: String) {
    private val json = ActionJson.mapper.readTree(text)
    def long(field: String): Long = json.required(field).longValue
    def has(field: String): Boolean = json.has(field)
    def text(path: String): String = json.at(path).asText
  }

  test("a checksum has file counts, deleted row counts, and the non-file actions") {
    val features = Set("deletionVectors")
    val table = TableBuilder().commit(
      0,
      Protocol(3, 7, Some(features), Some(features)),
      TableBuilder.metadata,
      add("a", 10),
      add("b", 5, Some(dv("x").copy(cardinality = 4))),
      SetTransaction("app", 3, Some(1)),
      DomainMetadata("d", "{}", removed = false)
    )
    run(table, 0, MaintenanceTask.Checksum)
    val found = checksum(table, 0)
    assertEquals(found.long("numFiles"), 2L)
    assertEquals(found.long("tableSizeBytes"), 15L)
    assertEquals(found.long("numDeletedRecordsOpt"), 4L)
    assertEquals(found.long("numDeletionVectorsOpt"), 1L)
    assertEquals(found.text("/metadata/id"), "test-table")
    assertEquals(found.text("/protocol/minReaderVersion"), "3")
    assertEquals(found.text("/setTransactions/0/appId"), "app")
    assertEquals(found.text("/domainMetadata/0/domain"), "d")
    assertEquals(found.has("inCommitTimestampOpt"), false)
  }

  test("every version gets its own checksum, also after later commits") {
    val table = TableBuilder.created(add("a"))
    val maintenance = MaintenanceFixture.maintenance(table.open(), _ => plain)
    maintenance.run(0, Seq(MaintenanceTask.Checksum))
    (1 to 4).foreach(v => table.commit(v.toLong, add(s"f$v")))
    (1 to 4).foreach(v => maintenance.run(v.toLong, Seq(MaintenanceTask.Checksum)))
    assertEquals(
      (0 to 4).toVector.map(v => checksum(table, v.toLong).long("numFiles")),
      (1L to 5L).toVector
    )
  }

  test("the whole log is not read to write a checksum") {
    val table = TableBuilder.created(add("a")).commit(1, add("b"))
    run(table, 1, MaintenanceTask.Checksum)
    assertEquals(names(table).count(_.endsWith(".crc")), 0)
  }

  test("without a snapshot in memory, a checksum is derived from the previous one and the commit") {
    val features = Set("deletionVectors", "inCommitTimestamp")
    val protocol = Protocol(3, 7, Some(Set("deletionVectors")), Some(features))
    val dated =
      TableBuilder.metadata.copy(configuration = Map("delta.enableInCommitTimestamps" -> "true"))
    def info(timeMs: Long): CommitInfo = CommitInfo(
      ActionJson.mapper.createObjectNode().put("inCommitTimestamp", timeMs)
    )
    def vector(rows: Long) = Some(dv(s"v$rows").copy(cardinality = rows))
    val commits = Seq[Seq[Action]](
      Seq(info(1), protocol, dated, add("a", 10), add("b", 5), SetTransaction("app", 1)),
      Seq(
        info(2),
        remove("a").copy(sizeBytes = Some(10)),
        add("a", 10, vector(3)),
        SetTransaction("app", 2),
        DomainMetadata("kept", "{}", removed = false)
      ),
      Seq(
        info(3),
        dated.copy(configuration = dated.configuration + ("x" -> "y")),
        remove("a").copy(sizeBytes = Some(10), deletionVector = vector(3)),
        add("c", 7, vector(1)),
        DomainMetadata("kept", "", removed = true),
        SetTransaction("more", 1)
      ),
      // Existing files get row IDs.
      Seq(
        CommitInfo(info(4).json.deepCopy.put("operation", "ROW TRACKING BACKFILL")),
        add("b", 5).copy(baseRowId = Some(0L)),
        add("c", 7, vector(1)).copy(baseRowId = Some(9L))
      )
    )
    val whole = TableBuilder()
    val maintenance = MaintenanceFixture.maintenance(whole.open(), _ => plain)
    val stepwise = TableBuilder()
    commits.zipWithIndex.foreach { case (actions, v) =>
      whole.commit(v.toLong, actions: _*)
      stepwise.commit(v.toLong, actions: _*)
      maintenance.run(v.toLong, Seq(MaintenanceTask.Checksum))
      run(stepwise, v.toLong, MaintenanceTask.Checksum)
    }
    commits.indices.foreach { v =>
      val name = f"$v%020d.crc"
      assertEquals(
        ActionJson.mapper.readTree(stepwise.log.resolve(name).toFile),
        ActionJson.mapper.readTree(whole.log.resolve(name).toFile),
        name
      )
    }
  }

  test("a checksum without file counts is not used to derive the next one") {
    val table = TableBuilder.created(add("a")).file(f"${0}%020d.crc", """{"numFiles":1}""")
    table.commit(1, add("b"))
    assertEquals(run(table, 1, MaintenanceTask.Checksum).failed, Set.empty[String])
    assertEquals(names(table).filter(_.endsWith(".crc")), Seq(f"${0}%020d.crc"))
  }

  test("many transactions and domains, and transactions that expire, are left out of checksums") {
    def apps(count: Int): Seq[Action] = (1 to count).map(i => SetTransaction(s"app $i", 1))
    def domains(count: Int): Seq[Action] =
      (1 to count).map(i => DomainMetadata(s"d$i", "{}", removed = false))
    def fields(table: TableBuilder, version: Long): (Boolean, Boolean) = {
      val found = checksum(table, version)
      (found.has("setTransactions"), found.has("domainMetadata"))
    }
    Seq((100, 10) -> (true, true), (101, 10) -> (false, true), (100, 11) -> (true, false)).foreach {
      case ((appCount, domainCount), included) =>
        val table = TableBuilder.created(apps(appCount) ++ domains(domainCount): _*)
        run(table, 0, MaintenanceTask.Checksum)
        assertEquals(fields(table, 0), included)
        assertEquals(table.open().latest().domains.size, domainCount)
        // Without a snapshot in memory.
        table.commit(1, SetTransaction("app 1", 2))
        run(table, 1, MaintenanceTask.Checksum)
        assertEquals(fields(table, 1), included)
        table.commit(2, SetTransaction("one more", 1), DomainMetadata("x", "{}", removed = false))
        run(table, 2, MaintenanceTask.Checksum)
        assertEquals(fields(table, 2), (false, false))
    }
    val expiring = TableBuilder.metadata.copy(configuration =
      Map("delta.setTransactionRetentionDuration" -> "interval 1 day")
    )
    val table = TableBuilder().commit(0, TableBuilder.protocol +: expiring +: apps(1): _*)
    run(table, 0, MaintenanceTask.Checksum)
    assertEquals(fields(table, 0), (false, true))
  }

  private val everyTask = Seq(
    MaintenanceTask.Checksum,
    MaintenanceTask.ClassicCheckpoint(None),
    MaintenanceTask.V2Checkpoint(10, alsoClassic = true),
    MaintenanceTask.Compaction(0, 0),
    MaintenanceTask.Cleanup(0)
  )

  test("maintenance of a table that was deleted does not recreate its directory") {
    val table = TableBuilder.created(add("a"))
    val maintenance = MaintenanceFixture.maintenance(table.open(), _ => plain)
    val parked = maintenance.due(0, everyTask)
    assert(FileUtil.fullyDelete(table.directory.toFile))
    parked()
    assert(!Files.exists(table.directory))
    assertEquals(maintenance.failed, Set.empty[String])
  }

  test("maintenance of a table that was replaced is not applied to the new table") {
    val table = TableBuilder.created(add("a"))
    val maintenance = MaintenanceFixture.maintenance(table.open(), _ => plain)
    val parked = maintenance.due(0, everyTask)
    table.delete(f"${0}%020d.json").commit(
      0,
      TableBuilder.protocol,
      TableBuilder.metadata.copy(id = "the next table"),
      add("b"),
      add("c")
    )
    parked()
    assertEquals(names(table), Seq(f"${0}%020d.json"))
  }

  test("a new table at the path of another one does not inherit its recorded checkpoint") {
    val table = TableBuilder.created(add("a")).commit(1, add("b"))
    val maintenance = run(table, 1, MaintenanceTask.ClassicCheckpoint(None))
    assertEquals(maintenance.newestCheckpoint(0), 1L)
    names(table).foreach(table.delete)
    table.commit(0, TableBuilder.protocol, TableBuilder.metadata, add("c"))
    run(table, 0, MaintenanceTask.Checksum)
    assertEquals(maintenance.newestCheckpoint(0), -1L)
  }

  test("while a checkpoint is being written, later commits need not write it, until it fails") {
    val table = TableBuilder.created(add("a")).commit(1, add("b"))
    val maintenance = MaintenanceFixture.maintenance(table.open(), _ => plain)
    val checkpoint = maintenance.due(1, Seq(MaintenanceTask.ClassicCheckpoint(None)))
    assertEquals(maintenance.newestCheckpoint(1), 1L)
    val failing =
      MaintenanceFixture.maintenance(table.open(), _ => throw new IllegalStateException("test"))
    val failure = failing.due(1, Seq(MaintenanceTask.ClassicCheckpoint(None)))
    failure()
    assertEquals(maintenance.failed, Set("checkpoint"))
    checkpoint()
    assertEquals((maintenance.newestCheckpoint(1), maintenance.failed), (1L, Set.empty[String]))
    table.commit(2, add("c"))
    failing.run(2, Seq(MaintenanceTask.ClassicCheckpoint(None)))
    assertEquals((maintenance.newestCheckpoint(2), maintenance.failed), (1L, Set("checkpoint")))
  }

  // Protocol: add-file-and-remove-file-2
  test("a compaction replaces its commits, and retains actions that cancel older ones") {
    val table = TableBuilder
      .created(
        add("a"),
        add("b"),
        DomainMetadata("old", "{}", removed = false),
        SetTransaction("app", 1)
      )
      .commit(1, add("f2"), remove("a"))
      .commit(2, add("f3"), add("f4"), SetTransaction("app", 4389))
      .commit(
        3,
        remove("f3"),
        SetTransaction("app", 4390),
        DomainMetadata("old", "", removed = true)
      )
      .commit(4, add("f5"))
    val expected = latest(table)
    run(table, 4, MaintenanceTask.Compaction(1, 3))
    val name = f"${1}%020d.${3}%020d.compacted.json"
    val lines = Files.readString(table.log.resolve(name)).linesIterator.toSeq
    val kinds = lines.map(ActionJson.parse(_).get.getClass.getSimpleName).sorted
    assertEquals(
      kinds,
      Seq("AddFile", "AddFile", "DomainMetadata", "RemoveFile", "RemoveFile", "SetTransaction")
    )
    // Reading the commits would fail.
    (1 to 3).foreach(v => table.raw(v.toLong, "{}\n"))
    assertEquals(latest(table), expected)
  }

  test("a range with a missing commit is not compacted") {
    val table = TableBuilder.created().commit(1, add("a"))
    assertEquals(run(table, 1, MaintenanceTask.Compaction(1, 2)).failed, Set.empty[String])
    assertEquals(names(table).count(_.contains("compacted")), 0)
  }
}
