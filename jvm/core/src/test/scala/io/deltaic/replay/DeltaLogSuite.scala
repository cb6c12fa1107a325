package io.deltaic.replay

import java.nio.file.Files
import java.util.concurrent.{Callable, Executors}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, created, dv, metadata, protocol}
import io.deltaic.log.{WatchedStore, WriteOutcome}
import io.deltaic.protocol._

class DeltaLogSuite extends munit.FunSuite {

  private def paths(snapshot: Snapshot): List[String] =
    (0 until snapshot.files.size).map(snapshot.files.path).toList.sorted

  private val now = System.currentTimeMillis

  private def refused(condition: String)(body: => Any): DeltaicThrowable = {
    val e = intercept[DeltaicThrowable] { body; () }
    assertEquals(e.condition, condition, e.getMessage)
    assertEquals("<[a-zA-Z]+>".r.findFirstIn(e.getMessage), None)
    e
  }

  test("a directory without a log is not a table") {
    val table = TableBuilder()
    assert(!table.open().exists)
    refused("DELTAIC_NOT_A_TABLE")(table.open().latest())
    refused("DELTAIC_NOT_A_TABLE")(table.open().at(0))
    refused("DELTAIC_NOT_A_TABLE")(table.open().earliestVersion)
    val nowhere = new DeltaLog(new Path("file:/no/such/table"), new Configuration())
    assert(!nowhere.exists)
    refused("DELTAIC_NOT_A_TABLE")(nowhere.latest())
  }

  // Protocol: reader-domain-metadata-3, reader-domain-metadata-4
  test("a snapshot has the newest txn and domain of each name, without removed domains") {
    val table = created(
      SetTransaction("a", 5),
      SetTransaction("b", 1),
      DomainMetadata("d", "1", removed = false),
      DomainMetadata("gone", "1", removed = false)
    ).commit(
      1,
      SetTransaction("a", 4, Some(9)),
      DomainMetadata("d", "2", removed = false),
      DomainMetadata("gone", "1", removed = true)
    )
    val snapshot = table.open().latest()
    assertEquals(snapshot.version, 1L)
    assertEquals(
      snapshot.transactions,
      Map("a" -> SetTransaction("a", 4, Some(9)), "b" -> SetTransaction("b", 1))
    )
    assertEquals(snapshot.domains, Map("d" -> DomainMetadata("d", "2", removed = false)))
  }

  test("an expired txn is ignored, although it is still in the log") {
    val kept = metadata.copy(configuration =
      Map("delta.setTransactionRetentionDuration" -> "interval 1 day")
    )
    val day = 86400000L
    val actions = Seq(
      SetTransaction("old", 1, Some(now - day)),
      SetTransaction("young", 1, Some(now - day + 1)),
      SetTransaction("ageless", 1)
    )
    val of = (metadata: Metadata) =>
      TableBuilder().commit(0, (TableBuilder.protocol +: metadata +: actions): _*).open().latest()
    assertEquals(of(kept).unexpiredTransactions(now).keySet, Set("young", "ageless"))
    assertEquals(of(kept).transactions.keySet, Set("old", "young", "ageless"))
    assertEquals(of(metadata).unexpiredTransactions(now).keySet, Set("old", "young", "ageless"))
  }

  // Protocol: action-reconciliation-1, dv-action-reconciliation-changes-1, dv-action-reconciliation-changes-2
  test("a file with another deletion vector is another logical file") {
    val table = created(add("f")).commit(1, add("f", dv = Some(dv("x"))), add("f").remove(now))
    val snapshot = table.open().latest()
    assertEquals(snapshot.files.size, 1)
    assertEquals(snapshot.files.deletionVector(0), dv("x"))
    assertEquals(snapshot.files.indexOf("f", None), -1)
    assertEquals(snapshot.files.indexOf("f", Some(dv("x").uniqueId)), 0)
    assertEquals(snapshot.tombstones.map(_.dvId).toList, List(None))
  }

  // Protocol: file-types-delta-log-entries-1
  test("latest includes new commits, and an older snapshot does not change") {
    val table = created(add("a"))
    val log = table.open()
    val first = log.latest()
    assert(log.latest() eq first)
    table.commit(1, add("b"), add("a").remove(1)).commit(2, add("c"))
    val second = log.latest()
    assertEquals((second.version, paths(second)), (2L, List("b", "c")))
    assertEquals((first.version, paths(first)), (0L, List("a")))
    assertEquals(paths(log.at(1)), List("b"))
  }

  test("a table that was replaced at the same path is read again") {
    val table = created(add("a")).commit(1, add("b"))
    val log = table.open()
    assertEquals(paths(log.latest()), List("a", "b"))
    table.commit(0, protocol, metadata.copy(id = "new"), add("x")).commit(1, add("longer-name"))
    assertEquals(log.latest().metadata.id, "new")
    assertEquals(paths(log.latest()), List("longer-name", "x"))
    table.delete(f"${1}%020d.json")
    assertEquals(log.latest().version, 0L)
  }

  private def onlyCheckpoint(table: TableBuilder, version: Long): TableBuilder = {
    CheckpointRows.write(
      table,
      f"$version%020d.checkpoint.parquet",
      CheckpointRows.schema(CheckpointRows.definitionColumns, CheckpointRows.plainAdd)
    )(
      CheckpointRows.protocolRow,
      CheckpointRows.metadataRow,
      CheckpointRows.addRow(s"in-$version")
    )
    table
  }

  test("a version with only a checkpoint is cached, and later commits are applied to it") {
    val table = onlyCheckpoint(TableBuilder(), 5)
    val log = table.open()
    val five = log.latest()
    assert(log.latest() eq five)
    assert(log.at(5) eq five)
    // A second read of the checkpoint would fail.
    val file = table.log.resolve(f"${5}%020d.checkpoint.parquet")
    val writtenAt = Files.getLastModifiedTime(file)
    Files.write(file, new Array[Byte](Files.size(file).toInt))
    Files.setLastModifiedTime(file, writtenAt)
    table.commit(6, add("a"))
    assertEquals(log.afterCommit(6).map(paths), Some(List("a", "in-5")))
    table.commit(7, add("b"))
    assertEquals(paths(log.latest()), List("a", "b", "in-5"))
  }

  test("a checkpoint that replaces all commits after a cached version is found") {
    val table = onlyCheckpoint(TableBuilder(), 5)
    val log = table.open()
    log.latest()
    onlyCheckpoint(table, 9)
    assertEquals((log.latest().version, paths(log.latest())), (9L, List("in-9")))
    table.delete(f"${9}%020d.checkpoint.parquet").commit(6, add("a"))
    assertEquals((log.latest().version, paths(log.latest())), (6L, List("a", "in-5")))
  }

  test("logs of one table share a snapshot until it is invalidated") {
    val table = created(add("a"))
    val first = DeltaLog.forTable(table.path, table.conf).latest()
    assert(DeltaLog.forTable(new Path(table.directory.toString), table.conf).latest() eq first)
    DeltaLog.invalidate(table.path)
    assert(DeltaLog.forTable(table.path, table.conf).latest() ne first)
  }

  test("time travel starts from the nearest cached snapshot, and is cached itself") {
    val table = created(add("a")).commit(1, add("b")).commit(2, add("c")).commit(3, add("d"))
    val log = table.open()
    val one = log.at(1)
    assert(log.at(1) eq one)
    table.raw(0, "no longer read")
    assertEquals(paths(log.at(2)), List("a", "b", "c"))
    assertEquals(paths(one), List("a", "b"))
    refused("DELTAIC_LOG_ENTRY_MALFORMED")(log.at(1))
  }

  test("time travel does not start from a snapshot whose commit was replaced") {
    val table = created(add("a")).commit(1, add("b")).commit(2, add("c"))
    val log = table.open()
    log.at(1)
    table.commit(1, add("another"))
    assertEquals(paths(log.at(2)), List("a", "another", "c"))
    assertEquals(paths(log.at(1)), List("a", "another"))
  }

  test("a snapshot reports its approximate size in bytes") {
    val names = (0 until 1000).map(i => f"part-$i%05d-${"x" * 50}.parquet")
    val snapshot = created(names.map(n => add(n).copy(stats = Some("y" * 200))): _*).open().latest()
    val perFile = snapshot.retainedBytes / 1000
    // The characters alone take 269 bytes; two objects, two numbers and their array slots are added.
    assert(perFile > 269 && perFile < 500, perFile.toString)
  }

  test("a gap in the log is refused, whichever version is requested") {
    val table = created(add("a")).commit(2, add("c"))
    val e = refused("DELTAIC_LOG_GAP")(table.open().latest())
    assertEquals(e.parameters("missing"), "1")
    refused("DELTAIC_LOG_GAP")(table.open().at(0))
    refused("DELTAIC_LOG_GAP")(table.open().at(2))
  }

  test("a gap that appears while a snapshot is cached is refused") {
    val table = created(add("a"))
    val log = table.open()
    log.latest()
    table.commit(2, add("c"))
    refused("DELTAIC_LOG_GAP")(log.latest())
  }

  private def watched(table: TableBuilder): (DeltaLog, WatchedStore) = {
    val conf = new Configuration(table.conf)
    conf.set("spark.deltaic.logStore.file.impl", classOf[WatchedStore].getName)
    val log = new DeltaLog(table.path, conf)
    (log, WatchedStore.last)
  }

  test("a commit that a listing misses during concurrent commits is found by listing again") {
    val table = created(add("a")).commit(1, add("b")).commit(2, add("c")).commit(3, add("d"))
    (0L to 3L).foreach(v => table.committedAt(v, 1000 + v))
    Seq(Seq(Set(1L)), Seq(Set(0L)), Seq(Set(1L, 2L)), Seq(Set(1L), Set(2L))).foreach { missed =>
      def ask[A](question: DeltaLog => A, before: Set[Long]*): A = {
        val (log, store) = watched(table)
        if (before.nonEmpty) log.latest()
        store.hide(before ++ missed: _*)
        question(log)
      }
      assertEquals(ask(_.latest()).version, 3L)
      assertEquals(ask(_.at(2)).version, 2L)
      assertEquals(ask(_.earliestVersion), 0L)
      // The first listing finds nothing new.
      val first = Set.empty[Long]
      assertEquals(ask(_.commitInfos(), first).map(_._1).toList, List(3L, 2L, 1L, 0L))
      assertEquals(ask(_.versionAt(1001), first), 1L)
      assertEquals(ask(_.versionFrom(1000), first), 0L)
      assertEquals(ask(_.commits(1, 2), first).map(_._1.version).toList, List(1L, 2L))
    }
  }

  test("the commitInfo of a commit of many files is read without the other actions") {
    val table = created((0 until 20000).map(i => add(s"f$i")): _*)
    val info = CommitInfo(ActionJson.mapper.createObjectNode().put("operation", "WRITE"))
    table.commit(1, info +: (0 until 20000).map(i => add(s"g$i")): _*)
    val (log, store) = watched(table)
    log.latest()
    val before = store.bytesRead.sum
    assertEquals(log.commitInfos(limit = Some(1)).map(_._3).toList, List(Some(info)))
    val read = store.bytesRead.sum - before
    assert(read < 100000, s"$read bytes were read")
  }

  test("an incremental update also lists again to find a commit that a listing missed") {
    val table = created(add("a"))
    val (log, store) = watched(table)
    log.latest()
    table.commit(1, add("b")).commit(2, add("c"))
    store.hide(Set(1L))
    assertEquals(paths(log.latest()), List("a", "b", "c"))
  }

  test("a persistent gap is refused after two listings, and a complete log is listed once") {
    val gap = created(add("a")).commit(2, add("c"))
    val (broken, lists) = watched(gap)
    refused("DELTAIC_LOG_GAP")(broken.latest())
    assertEquals(lists.listings, 2)
    val (whole, once) = watched(created(add("a")).commit(1, add("b")))
    whole.latest()
    assertEquals(once.listings, 1)
  }

  test("after a commit only that commit is read, and nothing without a commit") {
    val table = created(add("a")).commit(1, add("b")).commit(2, add("c"))
    val (log, store) = watched(table)
    log.latest()
    store.reads.clear()
    table.commit(3, add("d"))
    assertEquals(paths(log.latest()), List("a", "b", "c", "d"))
    log.latest()
    assertEquals(store.reads.asScala.toList, List(f"${3}%020d.json"))
  }

  test("an incremental update lists the log from the cached version on") {
    val table = created(add("a")).commit(1, add("b")).commit(2, add("c"))
    val (log, store) = watched(table)
    def listed(): List[String] = {
      store.listedFrom.clear()
      log.latest()
      store.listedFrom.asScala.toList
    }
    assertEquals(listed(), List(f"${0}%020d"))
    table.commit(3, add("d"))
    assertEquals(listed(), List(f"${2}%020d"))
    assertEquals(listed(), List(f"${3}%020d"))
  }

  test("a log that begins after version 0 without a checkpoint is refused") {
    val table = TableBuilder().commit(3, protocol, metadata).commit(4, add("a"))
    val e = refused("DELTAIC_LOG_INCOMPLETE")(table.open().latest())
    assertEquals(e.parameters("earliest"), "3")
  }

  test("if the only checkpoint that covers the beginning is damaged, the error names it") {
    val damaged = f"${3}%020d.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    val table = TableBuilder().commit(4, add("a")).file(damaged, "x")
    val e = refused("DELTAIC_CHECKPOINT_UNREADABLE")(table.open().latest())
    assertEquals(e.parameters("version"), "4")
    assert(e.parameters("tried").contains(damaged), e.getMessage)
  }

  test("a malformed line is reported with table, version, file and line") {
    val table = created().raw(1, s"""${ActionJson.write(add("a"))}\n{"add":{"path":"b","si""")
    val e = refused("DELTAIC_LOG_ENTRY_MALFORMED")(table.open().latest())
    assertEquals(e.parameters("version"), "1")
    assertEquals(e.parameters("line"), "2")
    assertEquals(e.parameters("file"), "00000000000000000001.json")
    assertEquals(paths(table.open().at(0)), Nil)
  }

  test("other files in the log directory are ignored") {
    val table = created(add("a"))
      .file(".00000000000000000001.json.1234.tmp", "{")
      .file("00000000000000000001.json.tmp", "{")
      .file("00000000000000000000.00000000000000000001.compacted.json", "{")
      .file("00000000000000000000.crc", "{")
      .file("00000000000000000001.checkpoint.parquet", "")
      .file("_something", "{")
    assertEquals(paths(table.open().latest()), List("a"))
  }

  Seq("", "{", "null", "[]", """{"version":"x"}""", """{"version":99}""", """{"version":-1}""")
    .foreach { hint =>
      test(s"_last_checkpoint with '$hint' is harmless") {
        val table = created(add("a")).commit(1, add("b")).file("_last_checkpoint", hint)
        assertEquals(paths(table.open().latest()), List("a", "b"))
        assertEquals(paths(table.open().at(0)), List("a"))
      }
    }

  // Protocol: table-features-7
  test(
    "an unreadable table is refused as soon as its protocol is known, and again when it changes"
  ) {
    val table = created(add("a"))
    val log = table.open()
    log.latest()
    table.commit(1, Protocol(3, 7, Some(Set("fromTheFuture")), Some(Set("fromTheFuture"))))
    refused("DELTAIC_UNSUPPORTED_READER_FEATURE")(log.latest())
    assertEquals(paths(log.at(0)), List("a"))
  }

  test("tryCommit writes a version once, and latest sees it") {
    val table = created()
    val log = table.open()
    log.latest()
    assertEquals(log.tryCommit(1, Iterator(ActionJson.write(add("a")))), WriteOutcome.Written)
    assertEquals(log.tryCommit(1, Iterator(ActionJson.write(add("b")))), WriteOutcome.AlreadyExists)
    assertEquals(paths(log.latest()), List("a"))
    assertEquals(log.commit(1).adds.map(_.path).toList, List("a"))
    refused("DELTAIC_COMMIT_NOT_FOUND")(log.commit(2))
  }

  test("no commit can follow a deleted version, unless its checkpoint is left") {
    val table = created().commit(1, add("a"))
    val log = table.open()
    val read = log.latest().commitFile
    def commit(version: Long): WriteOutcome =
      log.tryCommit(version, Iterator(ActionJson.write(add("b"))), read)
    table.delete("00000000000000000001.json")
    refused("DELTAIC_TABLE_REPLACED")(commit(2))
    table.file("00000000000000000001.checkpoint.parquet", "x")
    assertEquals(commit(2), WriteOutcome.Written)
    table.log.toFile.listFiles.foreach(_.delete())
    assert(table.log.toFile.delete())
    refused("DELTAIC_TABLE_REPLACED")(commit(3))
    assert(!table.log.toFile.exists)
  }

  test("no commit can follow a version of another table at the same path") {
    val table = created().commit(1, add("a")).committedAt(1, 1000)
    val log = table.open()
    val read = log.latest().commitFile
    table.commit(1, add("another")).commit(2, add("more"))
    assertEquals(log.tryCommit(2, Iterator(""), read), WriteOutcome.AlreadyExists)
    refused("DELTAIC_TABLE_REPLACED")(log.tryCommit(3, Iterator(""), read))
  }

  test(
    "a commit can follow a file whose time is listed in milliseconds and reported in seconds"
  ) {
    val second = 1700000000000L
    val table = created().committedAt(0, second)
    val read = table.open().latest().commitFile.get
    def commit(version: Long, readAtMs: Long): WriteOutcome = {
      val status = new FileStatus(read.getLen, false, 1, 1, readAtMs, read.getPath)
      table.open().tryCommit(version, Iterator(ActionJson.write(add("a"))), Some(status))
    }
    assertEquals(commit(1, second + 123), WriteOutcome.Written)
    refused("DELTAIC_TABLE_REPLACED")(commit(2, second + 1000))
    table.committedAt(0, second + 123)
    assertEquals(commit(2, second), WriteOutcome.Written)
    refused("DELTAIC_TABLE_REPLACED")(commit(3, second + 124))
  }

  // Protocol: file-types-delta-log-entries-1
  test("concurrent threads that commit and read see every version completely") {
    val table = created(add("file-0"))
    val log = table.open()
    val pool = Executors.newFixedThreadPool(4)
    try {
      val readers = (0 until 3).map { _ =>
        pool.submit(new Callable[Unit] {
          override def call(): Unit = {
            var snapshot = log.latest()
            while (snapshot.version < 100) {
              assertEquals(snapshot.files.size.toLong, snapshot.version + 1)
              val next = log.latest()
              assert(next.version >= snapshot.version)
              snapshot = next
            }
          }
        })
      }
      (1 to 100).foreach(v => log.tryCommit(v, Iterator(ActionJson.write(add(s"file-$v")))))
      readers.foreach(_.get())
    } finally pool.shutdownNow()
  }
}
