package io.deltaic.maintenance

import java.nio.file.Files

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv, metadata}
import io.deltaic.protocol._

/** Checkpoints that this engine writes and reads; delta-spark and delta-rs read them in tests/peers. */
class CheckpointWriterSuite extends munit.FunSuite {
  import MaintenanceFixture._
  import MaintenanceTask._

  private val classic = ClassicCheckpoint(None)
  private val day = 86400000L

  private val rich: AddFile = AddFile(
    "p=%2520/a%20b.parquet",
    Map("p" -> "x y", "q" -> null),
    123,
    456,
    dataChange = true,
    stats =
      Some("""{"numRecords":3,"minValues":{"i":1},"maxValues":{"i":2},"nullCount":{"i":0}}"""),
    tags = Map("k" -> "v", "none" -> null),
    deletionVector = Some(dv("one")),
    baseRowId = Some(0),
    defaultRowCommitVersion = Some(2),
    clusteringProvider = Some("liquid")
  )

  private def everything(): TableBuilder = {
    val all = Set("deletionVectors", "v2Checkpoint", "domainMetadata", "rowTracking")
    val protocol = Protocol(3, 7, Some(all.take(2)), Some(all))
    val described = metadata.copy(
      name = Some("n"),
      description = Some("d"),
      partitionColumns = Seq("p", "q"),
      createdTimeMs = Some(77),
      configuration = Map("delta.checkpointInterval" -> "2", "user" -> "x")
    )
    TableBuilder()
      .commit(0, protocol, described, rich, add("b"), add("gone"), add("c"))
      .commit(
        1,
        remove("gone"),
        remove("b").copy(deletionVector = None),
        add("b", dv = Some(dv("two"))),
        SetTransaction("app", 7, Some(5)),
        SetTransaction("other", 1),
        DomainMetadata("kept", "{}", removed = false),
        DomainMetadata("dropped", "{}", removed = false)
      )
      .commit(2, DomainMetadata("dropped", "", removed = true), remove("c", ageMs = 2000))
  }

  Seq(
    "classic" -> classic,
    "multi-part" -> ClassicCheckpoint(Some(3)),
    "V2" -> V2Checkpoint(sidecarSize = 2, alsoClassic = false),
    "V2 with the classic name" -> V2Checkpoint(sidecarSize = 100, alsoClassic = true)
  ).foreach { case (kind, task) =>
    // Protocol: checkpoint-schema-1, checkpoint-schema-2, classic-checkpoint-1, reader-domain-metadata-4, requirements-for-writers-checkpoints-1, uuid-named-checkpoint-1, v2-spec-1, writer-domain-metadata-1, writer-row-tracking-13, writer-row-tracking-4
    test(s"a $kind checkpoint alone gives the state of the commits") {
      val table = everything()
      val expected = latest(table)
      val maintenance = run(table, 2, task)
      assertEquals(maintenance.failed, Set.empty[String])
      assertEquals(state(withoutCommits(table).latest()), expected)
    }
  }

  // Protocol: add-file-and-remove-file-2, dv-tombstones-1, requirements-for-writers-checkpoints-1
  test("only unexpired tombstones and transactions are retained") {
    val shortLived = metadata.copy(configuration =
      Map(
        "delta.deletedFileRetentionDuration" -> "interval 1 day",
        "delta.setTransactionRetentionDuration" -> "interval 1 day"
      )
    )
    val now = System.currentTimeMillis
    val table = TableBuilder().commit(
      0,
      TableBuilder.protocol,
      shortLived,
      remove("old", ageMs = 2 * day),
      remove("young"),
      SetTransaction("old", 1, Some(now - 2 * day)),
      SetTransaction("young", 1, Some(now)),
      SetTransaction("ageless", 1)
    )
    run(table, 0, classic)
    val snapshot = withoutCommits(table).latest()
    assertEquals(snapshot.tombstones.map(_.path).toSet, Set("young"))
    assertEquals(snapshot.transactions.keySet, Set("young", "ageless"))
  }

  // Protocol: classic-checkpoint-1
  test("an existing checkpoint is never overwritten, and has the same state") {
    val table = everything()
    run(table, 2, classic)
    val file = table.log.resolve(checkpoints(table).head)
    val before = Files.readAllBytes(file).toSeq
    // As in another process, which has no record of it.
    MaintenanceState.forget(table.open().table)
    assertEquals(run(table, 2, classic).failed, Set.empty[String])
    assertEquals(Files.readAllBytes(file).toSeq, before)
    assertEquals(checkpoints(table).size, 1)
  }

  // Protocol: multi-part-checkpoint-2
  test("each part has the rows of its hash, and each row is in one part") {
    val files = (0 until 500).map(i => add(s"f$i"))
    val table = TableBuilder.created(files: _*)
    run(table, 0, ClassicCheckpoint(Some(100)))
    assertEquals(checkpoints(table).size, 6)
    assertEquals(checkpoints(table).head, f"${0}%020d.checkpoint.${1}%010d.${6}%010d.parquet")
    val snapshot = withoutCommits(table).latest()
    assertEquals(
      (0 until snapshot.files.size).map(snapshot.files.path).sorted,
      files.map(_.path).sorted
    )
  }

  // Protocol: handling-backward-compatibility-while-moving-to-uuid-named-v2-checkpoints-2, sidecar-file-information-1, sidecar-files-1, v2-spec-2
  test("a V2 checkpoint writes its files to sidecars of the requested size") {
    val table = TableBuilder.created((0 until 25).map(i => add(s"f$i")): _*)
    run(table, 0, V2Checkpoint(sidecarSize = 10, alsoClassic = true))
    val sidecars = table.log.resolve("_sidecars").toFile.list.toSeq
    assertEquals(sidecars.count(_.endsWith(".parquet")), 3)
    assertEquals(checkpoints(table).size, 2)
    val hint = ActionJson.mapper.readTree(table.log.resolve("_last_checkpoint").toFile)
    assertEquals(hint.path("size").asLong, 25L + 2 + 3 + 1)
    assert(checkpoints(table).contains(hint.path("v2Checkpoint").path("path").asText), hint)
  }

  test("the hint has the counts of the checkpoint and a checksum") {
    val table = everything()
    run(table, 2, classic)
    val json = ActionJson.mapper.readTree(table.log.resolve("_last_checkpoint").toFile)
    assertEquals(json.path("version").asLong, 2L)
    // protocol, metaData, two txn, one domain; two files, and the tombstones of three
    assertEquals(json.path("size").asLong, 5L + 2 + 3)
    assertEquals(json.path("numOfAddFiles").asLong, 2L)
    assertEquals(
      json.path("sizeInBytes").asLong,
      Files.size(table.log.resolve(checkpoints(table).head))
    )
    assertEquals(json.path("checksum").asText.length, 32)
    table.commit(3, add("d"))
    assertEquals(table.open().latest().files.size, 3)
  }

  test("an older checkpoint does not overwrite the hint") {
    val table = everything().file("_last_checkpoint", """{"version":9,"size":1}""")
    run(table, 2, classic)
    val hint = Files.readString(table.log.resolve("_last_checkpoint"))
    assertEquals(hint, """{"version":9,"size":1}""")
  }

  test("a failed task is recorded and harmless, and the next commit repeats it") {
    val table = everything()
    val inTheWay = Files.createDirectory(table.log.resolve("_last_checkpoint"))
    Files.createFile(inTheWay.resolve("x"))
    assertEquals(run(table, 2, classic, Checksum).failed, Set("checkpoint"))
    assert(names(table).contains(f"${2}%020d.crc"), names(table))
    Files.delete(inTheWay.resolve("x"))
    Files.delete(inTheWay)
    table.commit(3, add("d"))
    assertEquals(run(table, 3, classic).failed, Set.empty[String])
    assertEquals(Files.isRegularFile(inTheWay), true)
  }

  // Protocol: file-types-checkpoints-7
  test("no maintenance is written for a version that no longer exists") {
    val table = everything()
    assertEquals(run(table, 5, classic, Checksum).failed, Set.empty[String])
    assertEquals(names(table).filterNot(_.endsWith(".json")), Nil)
  }

  // Protocol: file-types-checkpoints-7
  test("a table that is replaced while its checkpoint is written does not get the checkpoint") {
    val table = everything()
    val layout = { _: io.deltaic.replay.Snapshot =>
      table.delete(f"${2}%020d.json").commit(2, add("of another table"))
      plain
    }
    val maintenance = MaintenanceFixture.maintenance(table.open(), layout)
    maintenance.run(2, Seq(classic))
    assertEquals(maintenance.failed, Set("checkpoint"))
    assertEquals(names(table).filterNot(_.endsWith(".json")), Nil)
  }
}
