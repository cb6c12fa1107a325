package io.deltaic.replay

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{Files => LocalFiles}

import org.apache.parquet.example.data.Group
import org.apache.parquet.io.ParquetDecodingException

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv}
import io.deltaic.log.LogThreads
import io.deltaic.maintenance.{MaintenanceFixture, MaintenanceTask}
import io.deltaic.protocol._
import io.deltaic.replay.checkpoint.UnreadableContent

/** Snapshots whose files stay in the checkpoint. [[GoldenTablesSuite]] compares them with golden tables. */
class DistributedSnapshotSuite extends munit.FunSuite {
  import CheckpointRows._
  import DistributedSnapshots._

  private val id = "80a083e8-7026-4e79-81be-64bd76c43a11"
  private val features = Some(Set("v2Checkpoint", "deletionVectors"))
  private val protocol = Protocol(3, 7, features, features)
  private val metadata = Metadata("from-checkpoint", schemaString = Metadata.EmptySchema)
  private val now = System.currentTimeMillis
  private val classic = f"${0}%020d.checkpoint.parquet"

  private val files =
    """
    optional group add { optional binary path (UTF8); optional int64 size; optional binary stats (UTF8);
      optional group partitionValues (MAP) {
        repeated group key_value { required binary key (UTF8); optional binary value (UTF8); } } }
    optional group remove { optional binary path (UTF8); optional int64 deletionTimestamp; }"""

  private def fileRow(path: String, p: Option[String] = None)(row: Group): Unit = {
    val file = row.addGroup("add").append("path", path).append("size", 7L)
    file.append("stats", s"""{"numRecords":${path.length}}""")
    val values = file.addGroup("partitionValues")
    p.foreach(v => values.addGroup("key_value").append("key", "p").append("value", v))
  }

  private def nullPartitionRow(path: String)(row: Group): Unit = {
    row.addGroup("add").append("path", path).append("size", 7L)
      .addGroup("partitionValues").addGroup("key_value").append("key", "p")
    ()
  }

  private def removeRow(path: String)(row: Group): Unit = {
    row.addGroup("remove").append("path", path).append("deletionTimestamp", now)
    ()
  }

  private def distributed(table: TableBuilder, maxInMemoryBytes: Long = 0) =
    new DeltaLog(table.path, table.conf, maxInMemoryBytes)

  private def paths(snapshot: Snapshot): List[String] =
    slicewise(snapshot).map(_.path).toList.sorted

  private def created(): TableBuilder =
    TableBuilder().commit(0, protocol, metadata, add("from-commit"))

  private def checkpointed(rows: (Group => Unit)*): TableBuilder = {
    val table = created()
    write(
      table,
      classic,
      schema(definitionColumns, files)
    )(Seq(protocolRow _, metadataRow _) ++ rows: _*)
    table
  }

  private def many(prefix: String, count: Int): Seq[String] =
    (0 until count).map(i => s"$prefix-$i-${"x" * 50}")

  /** Every form of a checkpoint. */
  private val forms: Seq[(String, () => TableBuilder)] = Seq(
    "one file of several row groups" -> { () =>
      val table = created()
      val rows = many("f", 700).map(p => fileRow(p, Some(p.take(4))) _)
      write(table, classic, schema(definitionColumns, files), 4096)(
        Seq(protocolRow _, metadataRow _) ++ rows :+ (removeRow("gone") _): _*
      )
      table
    },
    "several parts" -> { () =>
      val table = created()
      def part(n: Int) = f"${0}%020d.checkpoint.$n%010d.${2}%010d.parquet"
      write(
        table,
        part(1),
        schema(definitionColumns, files)
      )(protocolRow, fileRow("a"), removeRow("x"))
      write(table, part(2), schema(definitionColumns, files))(metadataRow, fileRow("b", Some("")))
      table
    },
    "sidecars of a JSON file" -> { () =>
      val table = created()
      sidecars(table)
      json(table, Sidecar("one.parquet", 1, 1), Sidecar("two.parquet", 1, 1))
      table
    },
    "a JSON file with all actions" -> { () =>
      val table = created()
      json(table, add("a"), add("b", dv = Some(dv("v"))), add("gone").remove(now))
      table
    },
    "sidecars of a Parquet file" -> { () =>
      val table = created()
      sidecars(table)
      write(table, f"${0}%020d.checkpoint.$id.parquet", schema(definitionColumns, v2))(
        checkpointMetadataRow(0),
        protocolRow,
        metadataRow,
        sidecarRow("one.parquet"),
        sidecarRow("two.parquet")
      )
      table
    },
    "partition values that are null, empty and missing" -> { () =>
      checkpointed(
        fileRow("a", Some("1")),
        nullPartitionRow("b"),
        fileRow("c"),
        fileRow("d", Some(""))
      )
    }
  )

  private def sidecars(table: TableBuilder): Unit = {
    write(table, "_sidecars/one.parquet", schema(files))(fileRow("a"), fileRow("b", Some("1")))
    write(table, "_sidecars/two.parquet", schema(files))(fileRow("c"), removeRow("gone"))
  }

  private def json(table: TableBuilder, more: Action*): Unit = {
    val actions = Seq(CheckpointMetadata(0), metadata, protocol) ++ more
    table.file(
      f"${0}%020d.checkpoint.$id.json",
      actions.map(ActionJson.write).mkString("", "\n", "\n")
    )
    ()
  }

  forms.foreach { case (form, make) =>
    test(s"a checkpoint of $form gives the same files as in memory, also after commits") {
      val table = make()
      assertSame(distributed(table).latest(), table.open().latest())
      val log = distributed(table)
      log.latest()
      val first = table.open().latest().files
      table
        .commit(1, add("new"), first.add(0).remove(now), SetTransaction("app", 3))
        .commit(2, first.add(1).copy(deletionVector = Some(dv("w"))), first.add(1).remove(now))
        .commit(3, add("new").remove(now), first.add(0), add("gone"))
      assertSame(log.latest(), table.open().latest())
      assertSame(distributed(table).latest(), table.open().latest())
      assertSame(log.at(2), table.open().at(2))
    }
  }

  test("the files of the checkpoint are not in memory, but those of later commits are") {
    val table = checkpointed(many("f", 5000).map(p => fileRow(p) _): _*)
    val log = distributed(table)
    assertEquals(log.latest().filesInMemory.size, 0)
    assert(log.latest().retainedBytes < 10000, log.latest().retainedBytes.toString)
    assert(table.open().latest().retainedBytes > 500000)
    table.commit(1, add("new"), add("from-elsewhere").remove(now))
    assertEquals(log.latest().filesInMemory.size, 1)
    assertEquals(log.latest().stored.map(_.superseded.size), Some(2))
  }

  test("a compaction that contradicts itself is ignored") {
    val table = checkpointed(fileRow("a"), fileRow("b"))
      .commit(1, add("a").remove(now), add("c"))
      .commit(2, add("c").remove(now))
    val twice = Seq(add("c").remove(now), add("c"), add("a")).map(ActionJson.write)
    table.file(f"${1}%020d.${2}%020d.compacted.json", twice.mkString("\n"))
    assert(distributed(table).latest().isDistributed)
    assertEquals(paths(distributed(table).latest()), List("b"))
    assertSame(distributed(table).latest(), table.open().latest())
  }

  test("a checkpoint up to the limit is read into memory, but a larger one is not") {
    val table = checkpointed(fileRow("a"))
    val bytes = LocalFiles.size(table.log.resolve(classic))
    assert(distributed(table, bytes - 1).latest().isDistributed)
    assert(!distributed(table, bytes).latest().isDistributed)
    assert(!distributed(TableBuilder.created(add("a"))).latest().isDistributed)
  }

  test("the size of a checkpoint includes its sidecars") {
    val table = created()
    sidecars(table)
    json(table, Sidecar("one.parquet", 1, 1), Sidecar("two.parquet", 1, 1))
    val top = LocalFiles.size(table.log.resolve(f"${0}%020d.checkpoint.$id.json"))
    assert(distributed(table, top).latest().isDistributed)
    assert(!distributed(table, top + 100000).latest().isDistributed)
  }

  test("logs with different limits share a cached table, and each gets its own form") {
    val table = checkpointed(fileRow("a"))
    val inMemory = DeltaLog.forTable(table.path, table.conf)
    val inPlace = DeltaLog.forTable(table.path, table.conf, 0)
    assert(!inMemory.latest().isDistributed)
    assert(inPlace.latest().isDistributed)
    assert(inPlace.at(0).isDistributed)
    assert(!inMemory.at(0).isDistributed)
    assert(!inMemory.latest().isDistributed)
    assert(inMemory.latest() eq inMemory.latest())
    DeltaLog.invalidate(table.path)
  }

  // Protocol: file-types-checkpoints-1
  test("a newer checkpoint replaces an older one and the commits before it") {
    val table = checkpointed(fileRow("a"))
    val log = distributed(table)
    log.latest()
    table.commit(1, add("b"))
    assertEquals(paths(log.latest()), List("a", "b"))
    write(table, f"${1}%020d.checkpoint.parquet", schema(definitionColumns, files))(
      protocolRow,
      metadataRow,
      fileRow("a"),
      fileRow("b")
    )
    table.commit(2, add("c"))
    assertEquals(paths(log.latest()), List("a", "b", "c"))
    assertEquals(log.latest().stored.map(_.checkpoint.version), Some(1L))
    assertEquals(log.latest().filesInMemory.size, 1)
  }

  private val outgrown = many("f", 3000)
  private def outgrownRows: Seq[Group => Unit] = outgrown.map(p => fileRow(p) _)

  Seq[(String, TableBuilder => Unit)](
    "checkpoint" -> { table =>
      write(table, f"${1}%020d.checkpoint.parquet", schema(definitionColumns, files))(
        Seq(protocolRow _, metadataRow _) ++ outgrownRows: _*
      )
    },
    "checkpoint with sidecars" -> { table =>
      write(table, "_sidecars/one.parquet", schema(files))(outgrownRows: _*)
      write(table, f"${1}%020d.checkpoint.$id.parquet", schema(definitionColumns, v2))(
        checkpointMetadataRow(1),
        protocolRow,
        metadataRow,
        sidecarRow("one.parquet")
      )
    }
  ).foreach { case (form, checkpoint) =>
    test(s"an in-memory table that exceeds the limit is distributed from its next $form on") {
      val table = created()
      val log = distributed(table, 10000)
      assert(!log.latest().isDistributed)
      table.commit(1, outgrown.map(add(_)): _*)
      assert(!log.latest().isDistributed)
      checkpoint(table)
      assert(log.latest().isDistributed)
      assertEquals(paths(log.latest()), outgrown.toList.sorted)
    }
  }

  test("one slice of a checkpoint is read ahead of the one in use") {
    val table = created()
    write(table, classic, schema(definitionColumns, files), 4096)(
      Seq(protocolRow _, metadataRow _) ++ outgrownRows: _*
    )
    val stored = distributed(table).latest().stored.get
    assert(stored.slices.size > 2 * LogThreads.count, stored.slices.size.toString)
    var taken = 0
    val slices = stored.slices.to(LazyList).map { slice =>
      taken += 1
      slice
    }
    new UnloadedFiles(stored.checkpoint, stored.sizeBytes, slices, stored.superseded, table.conf)
      .adds.next()
    assertEquals(taken, 2)
  }

  test("a checkpoint with unreadable content is skipped, as for in-memory snapshots") {
    val table = checkpointed(many("f", 500).map(p => fileRow(p) _): _*)
    val log = distributed(table)
    val snapshot = log.latest()
    assert(snapshot.isDistributed)
    val file = table.log.resolve(classic)
    val bytes = LocalFiles.readAllBytes(file)
    java.util.Arrays.fill(bytes, 4, bytes.length / 2, 0.toByte)
    LocalFiles.write(file, bytes)
    val e = intercept[DeltaicThrowable](snapshot.adds.size)
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assert(e.getMessage.contains(classic), e.getMessage)
    assertEquals(paths(log.withoutCheckpoint(snapshot, "damaged")), List("from-commit"))
    // It is not tried again.
    assertEquals(paths(log.latest()), List("from-commit"))
    assert(log.latest() eq log.latest())
    table.delete(f"${0}%020d.json").commit(1, add("b"))
    val nothing = intercept[DeltaicThrowable](log.withoutCheckpoint(snapshot, "damaged"))
    assertEquals(nothing.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assert(nothing.parameters("tried").contains("damaged"), nothing.getMessage)
  }

  private def damage(table: TableBuilder, name: String): Unit = {
    val file = table.log.resolve(name)
    val bytes = LocalFiles.readAllBytes(file)
    java.util.Arrays.fill(bytes, 4, bytes.length / 2, 0.toByte)
    LocalFiles.write(file, bytes)
    ()
  }

  test("damaged checkpoints are not tried twice, also after commits") {
    val next = f"${1}%020d.checkpoint.parquet"
    val rows = Seq(protocolRow _, metadataRow _) ++ many("f", 500).map(p => fileRow(p) _)
    val table = created()
    write(table, classic, schema(definitionColumns, files))(rows: _*)
    table.commit(1, add("b"))
    write(table, next, schema(definitionColumns, files))(rows: _*)
    table.commit(2, add("c"))
    val log = distributed(table)
    assertEquals(log.latest().stored.map(_.checkpoint.version), Some(1L))
    val older = log.withoutCheckpoint(log.latest(), "damaged")
    assertEquals(older.stored.map(_.checkpoint.version), Some(0L))
    table.commit(3, add("d"))
    val after = log.afterCommit(3).get
    assert(after.isDistributed)
    assert(!log.withoutCheckpoint(after, "damaged").isDistributed)
  }

  test("a damaged checkpoint is followed by a good one") {
    val table = checkpointed(many("f", 500).map(p => fileRow(p) _): _*)
    val log = distributed(table)
    table.commit(1, add("b"))
    assert(log.latest().isDistributed)
    damage(table, classic)
    val maintenance = MaintenanceFixture.maintenance(log, _ => MaintenanceFixture.plain)
    maintenance.run(1, Seq(MaintenanceTask.ClassicCheckpoint(None)))
    assertEquals(maintenance.failed, Set.empty[String])
    val healed = distributed(table).latest()
    assertEquals(healed.stored.map(_.checkpoint.version), Some(1L))
    assertEquals(paths(healed), List("b", "from-commit"))
  }

  test("a failed read, or a failed consumer, does not make a checkpoint unreadable") {
    def read(failure: Exception): Either[Throwable, Unit] =
      UnreadableContent.orElse(throw failure)
    intercept[IOException](read(new IOException("connection reset")))
    intercept[RuntimeException](read(new RuntimeException(new IOException("connection reset"))))
    intercept[ClassCastException](
      UnreadableContent.orElse[Unit](
        UnreadableContent.rethrowingConsumerErrors[Unit](throw new ClassCastException("a bug"))
      )
    )
    assert(read(new FileNotFoundException("gone")).isLeft)
    assert(read(new ParquetDecodingException("damaged")).isLeft)
  }

  test("a large unreadable checkpoint is not tried again for each query") {
    val table = created()
    val log = distributed(table)
    log.latest()
    table.commit(1, add("b")).file(f"${1}%020d.checkpoint.parquet", "damaged")
    assertEquals(paths(log.latest()), List("b", "from-commit"))
    assert(log.latest() eq log.latest())
  }

  test("the size of a distributed table comes from its checksum file, if there is one") {
    val table = checkpointed(fileRow("a"), fileRow("b"))
    assertEquals(distributed(table).latest().size, None)
    assertEquals(table.open().latest().size, Some(TableSize(2, 14)))
    table.file(f"${0}%020d.crc", """{"numFiles":2,"tableSizeBytes":14}""")
    assertEquals(distributed(table).latest().size, Some(TableSize(2, 14)))
  }

  test("a complete checksum file saves reading the table") {
    val table = checkpointed(fileRow("a"), fileRow("b"))
    val fields = s""""numFiles":2,"tableSizeBytes":14,"protocol":${body(protocol)},
                  "metadata":${body(metadata)}"""
    table.file(f"${0}%020d.crc", s"{$fields}")
    // The damaged checkpoint is not read.
    table.file(classic, "damaged")
    val summary = table.open().latestFromChecksum().get
    assertEquals(summary.size, TableSize(2, 14))
    assertEquals((summary.protocol, summary.metadata), (protocol, metadata))
    assertEquals(summary.timestampMs, table.open().latest().timestampMs)
    val loaded = table.open()
    loaded.latest()
    assertEquals(loaded.latestFromChecksum(), None)
  }

  Seq(
    "no counts" -> (protocol, ""),
    "a protocol that this build cannot read" ->
      (Protocol(3, 7, Some(Set("future")), Some(Set("future"))), counts),
    "no domains of a table that may have some" ->
      (Protocol(1, 7, None, Some(Set("domainMetadata"))), counts)
  ).foreach { case (what, (protocol, more)) =>
    test(s"a checksum file with $what is not used") {
      val table = checkpointed(fileRow("a"))
      table.file(
        f"${0}%020d.crc",
        s"""{"protocol":${body(protocol)},"metadata":${body(metadata)}$more}"""
      )
      assertEquals(table.open().latestFromChecksum(), None)
    }
  }

  private lazy val counts = ""","numFiles":1,"tableSizeBytes":7"""

  private def body(action: Action): String =
    ActionJson.mapper.readTree(ActionJson.write(action)).elements.next().toString
}
