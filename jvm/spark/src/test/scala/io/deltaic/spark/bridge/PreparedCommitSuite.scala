package io.deltaic.spark.bridge

import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog

/** What Python sees of a commit and of the commits it lost to, over a real log. */
class PreparedCommitSuite extends munit.FunSuite {

  private val header =
    """{"commitInfo":{"timestamp":1,"operation":"WRITE","isBlindAppend":true}}"""
  private val definition = Seq(
    Protocol(1, 2),
    Metadata("id", schemaString = """{"type":"struct","fields":[]}""", createdTimeMs = Some(1))
  ).map(ActionJson.write)

  private val noRowIds = -1L

  private val log = FunFixture[DeltaLog](
    _ =>
      new DeltaLog(
        new Path(Files.createTempDirectory("deltaic-bridge").toUri),
        new Configuration()
      ),
    log => FileUtils.deleteDirectory(new java.io.File(log.table.toUri))
  )

  private val vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", Some(1), 40, 6)

  private def add(path: String, rows: Long, dv: Option[DeletionVectorDescriptor] = None): AddFile =
    AddFile(
      path,
      Map.empty,
      sizeBytes = 100,
      modificationTimeMs = 1,
      dataChange = true,
      stats = Some(s"""{"numRecords":$rows}"""),
      deletionVector = dv
    )

  private def commit(
      log: DeltaLog,
      changes: FileChanges,
      readVersion: Long = -1,
      reads: ReadSet = ReadSet.nothing
  ): PreparedCommit = new PreparedCommit(
    CommitRequest(
      log,
      readVersion,
      "WRITE",
      Map.empty,
      Json.obj(),
      true,
      Map.empty,
      changes,
      reads
    ),
    _ => ()
  )

  log.test("the first commit of a version wins and the second is told that it exists") { log =>
    val first = commit(log, FileChanges(adds = Seq(add("a", 10))))
    val second = commit(log, FileChanges(adds = Seq(add("b", 10))))
    val lines = (header +: definition).mkString("\n")
    assertEquals(Json.parse(first.tryCommit(0, lines, noRowIds)).get("status").asText, "committed")
    assertEquals(Json.parse(second.tryCommit(0, lines, noRowIds)).get("status").asText, "exists")
    assertEquals(first.committedVersion, Some(0L))
    assertEquals(second.committedVersion, None)
    assert(!first.abandon(), "its files are in the table")
    assert(second.abandon(), "its files are nowhere")
    assertEquals(log.latest().files.path(0), "a")
  }

  log.test("a commit that was abandoned, and its files with it, can no longer be made") { log =>
    val commit = this.commit(log, FileChanges(adds = Seq(add("a", 10))))
    assert(commit.abandon())
    val error = intercept[DeltaicThrowable] {
      commit.tryCommit(0, (header +: definition).mkString("\n"), noRowIds)
    }
    assertEquals(error.condition, "DELTAIC_COMMIT_ABANDONED")
    assert(!log.exists)
  }

  log.test("paths that are spelled differently are the same file") { log =>
    val winner = commit(log, FileChanges(Seq(add("a%20b", 5).remove(1))))
    winner.tryCommit(0, (header +: definition).mkString("\n"), noRowIds)
    val absolute = s"${log.table}/a%20b"
    val mine = commit(log, FileChanges(removes = Seq(add(absolute, 5).remove(1))))
    assertEquals(Json.parse(mine.winner(0)).get("removedFileRemoved").asText, "a%20b")
  }

  log.test("a winner's summary names what meets this commit, and nothing else") { log =>
    val winner = commit(log, FileChanges(Seq(add("old", 5).remove(1)), Seq(add("new", 7))))
    winner.tryCommit(0, (header +: definition).mkString("\n"), noRowIds)
    val blind = Json.parse(commit(log, FileChanges(adds = Seq(add("mine", 1)))).winner(0))
    assert(blind.get("addMatchingReads").isNull)
    assert(blind.get("removedFileRead").isNull)
    assert(blind.get("removedFileRemoved").isNull)
    assertEquals(blind.get("isBlindAppend").asBoolean, true)
    assertEquals(blind.get("metaData").get("id").asText, "id")
    assertEquals(blind.get("protocol").get("minWriterVersion").asInt, 2)

    val overwrite = FileChanges(removes = Seq(add("old", 5).remove(1)))
    val met = Json.parse(commit(log, overwrite, reads = ReadSet.everything).winner(0))
    assertEquals(met.get("addMatchingReads").asText, "new")
    assertEquals(met.get("removedFileRead").asText, "old")
    assertEquals(met.get("removedFileRemoved").asText, "old")
  }

  log.test("rows that were read and then moved are missed where they end") { log =>
    def moved(file: AddFile): AddFile = file.copy(dataChange = false)
    val (read, elsewhere, onceMore) = (add("read", 5), add("elsewhere", 5), add("once more", 5))
    val winners = Seq(
      FileChanges(Seq(read.remove(1, dataChange = false)), Seq(moved(elsewhere))),
      FileChanges(Seq(add("other", 5).remove(1, dataChange = false)), Seq(moved(add("new", 5)))),
      FileChanges(Seq(elsewhere.remove(1, dataChange = false)), Seq(moved(onceMore))),
      FileChanges(Seq(add("new", 5).remove(1))),
      FileChanges(Seq(onceMore.remove(1)), Seq(add("once more", 5, Some(vector))))
    )
    winners.zipWithIndex.foreach { case (changes, version) =>
      val lines = if (version == 0) header +: definition else Seq(header)
      commit(log, changes).tryCommit(version, lines.mkString("\n"), noRowIds)
    }
    val reads = new ReadSet {
      override def isEmpty: Boolean = false
      override def wholeTable: Boolean = false
      override def firstMatching(added: Seq[AddFile]): Option[AddFile] = None
      override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
        removed.find(_.path == "read")
    }
    val mine = commit(log, FileChanges(adds = Seq(add("mine", 1))), reads = reads)
    val missed = winners.indices.map(v => Json.parse(mine.winner(v)).get("removedFileRead"))
    assertEquals(missed.map(_.asText), Seq("null", "null", "null", "null", "once more"))
  }

  log.test("rows that ended are looked at, but not those that may have been read elsewhere") {
    log =>
      val (read, other, moved) = (add("read", 5), add("other", 5), add("moved", 5))
      val winners = Seq(
        FileChanges(Seq(read.remove(1)), Seq(add("read", 5, Some(vector)))),
        FileChanges(Seq(other.remove(1), read.remove(1)), Seq(add("new", 5))),
        FileChanges(Seq(read.remove(1, dataChange = false)), Seq(moved.copy(dataChange = false))),
        FileChanges(Seq(moved.remove(1)))
      )
      winners.zipWithIndex.foreach { case (changes, version) =>
        val lines = if (version == 0) header +: definition else Seq(header)
        commit(log, changes).tryCommit(version, lines.mkString("\n"), noRowIds)
      }
      var asked = Vector.empty[Seq[(String, Option[DeletionVectorDescriptor])]]
      val reads = new ReadSet {
        override def isEmpty: Boolean = false
        override def wholeTable: Boolean = false
        override def firstMatching(added: Seq[AddFile]): Option[AddFile] = None
        override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
          removed.find(_.path == "read")
        override def firstEnded(taken: Seq[TakenRows]): Option[RemoveFile] = {
          asked :+= taken.map(rows => rows.remove.path -> rows.left.flatMap(_.deletionVector))
          taken.find(rows => rows.remove.path == "read" && rows.left.isEmpty).map(_.remove)
        }
      }
      val mine = commit(log, FileChanges(), reads = ReadSet.union(ReadSet.nothing, reads))
      winners.indices.foreach(version => mine.winner(version))
      val found = winners.indices.map(version => mine.hasDeletedRow(s"[$version]"))
      assertEquals(found, Seq(false, true, false, true))
      val (first, second) = (Seq("read" -> Option(vector)), Seq("other" -> None, "read" -> None))
      assertEquals(asked, Vector(first, second))
      assert(mine.hasDeletedRow("[0, 1, 2]"), "all winners are looked at together")
      assertEquals(asked.last, first ++ second)
      assert(mine.hasDeletedRow("[0, 3]"), "rows were moved before they were deleted")
      assertEquals(asked.size, 3)
  }

  log.test("reads that look at no rows miss every file that they have read") { log =>
    val winner =
      commit(log, FileChanges(Seq(add("a", 5).remove(1)), Seq(add("a", 5, Some(vector)))))
    winner.tryCommit(0, (header +: definition).mkString("\n"), noRowIds)
    val mine = commit(log, FileChanges(), reads = ReadSet.everything)
    assert(mine.hasDeletedRow("[0]"))
  }

  log.test("counts tell new files, ended files and files that only changed their vector") { _ =>
    val changes = FileChanges(
      removes = Seq(
        add("gone", 5).remove(1),
        add("first vector", 9).remove(1),
        add("grown vector", 9, Some(vector.copy(cardinality = 1))).remove(1)
      ),
      adds = Seq(
        add("first vector", 9, Some(vector)),
        add("grown vector", 9, Some(vector)),
        add("written", 3)
      )
    )
    val counts = changes.summary
    assertEquals(counts.get("numAdded").asInt, 1)
    assertEquals(counts.get("addedRows").asInt, 3)
    assertEquals(counts.get("addedBytes").asInt, 100)
    assertEquals(counts.get("numRemoved").asInt, 1)
    assertEquals(counts.get("removedBytes").asInt, 100)
    assertEquals(counts.get("numDeletionVectorsAdded").asInt, 2)
    assertEquals(counts.get("numDeletionVectorsRemoved").asInt, 1)
    assertEquals(counts.get("numDeletionVectorsUpdated").asInt, 1)
    assertEquals(counts.get("dataChange").asBoolean, true)
  }

  log.test("new files get row ids and the version, those that only change their vector keep them") {
    log =>
      val known = add("known", 4).copy(baseRowId = Some(2), defaultRowCommitVersion = Some(0))
      val changes = FileChanges(
        Seq(known.remove(1)),
        Seq(add("a", 10), known.copy(deletionVector = Some(vector)), add("b", 3))
      )
      assertEquals(changes.summary.get("freshRows").asLong, 13L)
      commit(log, changes).tryCommit(0, (header +: definition).mkString("\n"), 20)
      val adds = log.commit(0).adds.map(a => a.path -> (a.baseRowId, a.defaultRowCommitVersion))
      assertEquals(
        adds.toMap,
        Map(
          "a" -> (Some(20L), Some(0L)),
          "known" -> (Some(2L), Some(0L)),
          "b" -> (Some(30L), Some(0L))
        )
      )
      assertEquals(log.commit(0).removes.next().baseRowId, Some(2L))
  }

  log.test("a file whose rows nobody counted gets no row ids, and nothing is written") { log =>
    val uncounted = FileChanges(adds = Seq(add("a", 1).copy(stats = None)))
    val error = intercept[DeltaicThrowable] {
      commit(log, uncounted).tryCommit(0, (header +: definition).mkString("\n"), 0)
    }
    assertEquals(error.condition, "DELTAIC_ROW_COUNT_UNKNOWN")
    assert(!log.exists)
  }

  log.test("a winner that says anew what a file is meets a commit that removes it") { log =>
    val lines = header +: definition :+
      """{"domainMetadata":{"domain":"delta.rowTracking","configuration":"{}","removed":false}}"""
    val renumbered = add("old", 5).copy(dataChange = false, baseRowId = Some(0))
    commit(log, FileChanges(adds = Seq(renumbered))).tryCommit(0, lines.mkString("\n"), noRowIds)
    val mine = commit(log, FileChanges(removes = Seq(add("old", 5).remove(1)))).winner(0)
    assertEquals(Json.parse(mine).get("removedFileRemoved").asText, "old")
    assertEquals(Json.parse(mine).get("domains").get("delta.rowTracking").asText, "{}")
  }
}
