package io.deltaic.spark.commit

import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.util.Json

/** The view of Python on a commit and on its winners, with a real log. */
class PreparedCommitSuite extends munit.FunSuite {

  private val commitInfo =
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
    LoggedFile(path, rows).copy(deletionVector = dv)

  private def commit(
      log: DeltaLog,
      changes: CommitFiles,
      readVersion: Long = -1,
      reads: ReadSet = ReadSet.nothing
  ): PreparedCommit = new PreparedCommit(
    CommitRequest(
      log,
      TableRead(readVersion, reads),
      OperationInfo("WRITE"),
      Plans.ofRows,
      isBlindAppend = true,
      changes
    ),
    _ => ()
  )

  log.test("the first commit of a version wins, and for the second the version exists") { log =>
    val first = commit(log, CommitFiles(adds = Seq(add("a", 10))))
    val second = commit(log, CommitFiles(adds = Seq(add("b", 10))))
    val lines = (commitInfo +: definition).mkString("\n")
    assertEquals(Json.parse(first.tryCommit(0, lines, noRowIds)).get("status").asText, "committed")
    assertEquals(Json.parse(second.tryCommit(0, lines, noRowIds)).get("status").asText, "exists")
    assertEquals(first.committedVersion, Some(0L))
    assertEquals(second.committedVersion, None)
    assert(!first.abandon(), "its files are in the table")
    assert(second.abandon(), "its files are not in the table")
    assertEquals(log.latest().files.path(0), "a")
  }

  log.test("an abandoned commit can no longer be committed") { log =>
    val commit = this.commit(log, CommitFiles(adds = Seq(add("a", 10))))
    assert(commit.abandon())
    val error = intercept[DeltaicThrowable] {
      commit.tryCommit(0, (commitInfo +: definition).mkString("\n"), noRowIds)
    }
    assertEquals(error.condition, "DELTAIC_COMMIT_ABANDONED")
    assert(!log.exists)
  }

  log.test("different spellings of a path are the same file") { log =>
    val winner = commit(log, CommitFiles(Seq(add("a%20b", 5).remove(1))))
    winner.tryCommit(0, (commitInfo +: definition).mkString("\n"), noRowIds)
    val absolute = s"${log.table}/a%20b"
    val mine = commit(log, CommitFiles(removes = Seq(add(absolute, 5).remove(1))))
    assertEquals(Json.parse(mine.winningCommit(0)).get("removedFileWeChange").asText, "a%20b")
  }

  log.test("a winner's summary names its conflicts with this commit, and nothing else") { log =>
    val winner = commit(log, CommitFiles(Seq(add("old", 5).remove(1)), Seq(add("new", 7))))
    winner.tryCommit(0, (commitInfo +: definition).mkString("\n"), noRowIds)
    val blind = Json.parse(commit(log, CommitFiles(adds = Seq(add("mine", 1)))).winningCommit(0))
    assert(blind.get("addedFileWeWouldRead").isNull)
    assert(blind.get("removedFileWeRead").isNull)
    assert(blind.get("removedFileWeChange").isNull)
    assertEquals(blind.get("isBlindAppend").asBoolean, true)
    assertEquals(blind.get("metaData").get("id").asText, "id")
    assertEquals(blind.get("protocol").get("minWriterVersion").asInt, 2)

    val overwrite = CommitFiles(removes = Seq(add("old", 5).remove(1)))
    val conflicting =
      Json.parse(commit(log, overwrite, reads = ReadSet.everything).winningCommit(0))
    assertEquals(conflicting.get("addedFileWeWouldRead").asText, "new")
    assertEquals(conflicting.get("removedFileWeRead").asText, "old")
    assertEquals(conflicting.get("removedFileWeChange").asText, "old")
  }

  log.test("relocated rows that were read conflict when they are deleted") { log =>
    def moved(file: AddFile): AddFile = file.copy(dataChange = false)
    val (read, elsewhere, onceMore) = (add("read", 5), add("elsewhere", 5), add("once more", 5))
    val winners = Seq(
      CommitFiles(Seq(read.remove(1, dataChange = false)), Seq(moved(elsewhere))),
      CommitFiles(Seq(add("other", 5).remove(1, dataChange = false)), Seq(moved(add("new", 5)))),
      CommitFiles(Seq(elsewhere.remove(1, dataChange = false)), Seq(moved(onceMore))),
      CommitFiles(Seq(add("new", 5).remove(1))),
      CommitFiles(Seq(onceMore.remove(1)), Seq(add("once more", 5, Some(vector))))
    )
    winners.zipWithIndex.foreach { case (changes, version) =>
      val lines = if (version == 0) commitInfo +: definition else Seq(commitInfo)
      commit(log, changes).tryCommit(version, lines.mkString("\n"), noRowIds)
    }
    val reads = new ReadSet {
      override def isEmpty: Boolean = false
      override def wholeTable: Boolean = false
      override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] = None
      override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
        removed.find(_.path == "read")
    }
    val mine = commit(log, CommitFiles(adds = Seq(add("mine", 1))), reads = reads)
    val conflicts =
      winners.indices.map(v => Json.parse(mine.winningCommit(v)).get("removedFileWeRead"))
    assertEquals(conflicts.map(_.asText), Seq("null", "null", "null", "null", "once more"))
  }

  log.test("deleted rows are read, except those that winners had moved") {
    log =>
      val (read, other, moved) = (add("read", 5), add("other", 5), add("moved", 5))
      val winners = Seq(
        CommitFiles(Seq(read.remove(1)), Seq(add("read", 5, Some(vector)))),
        CommitFiles(Seq(other.remove(1), read.remove(1)), Seq(add("new", 5))),
        CommitFiles(Seq(read.remove(1, dataChange = false)), Seq(moved.copy(dataChange = false))),
        CommitFiles(Seq(moved.remove(1)))
      )
      winners.zipWithIndex.foreach { case (changes, version) =>
        val lines = if (version == 0) commitInfo +: definition else Seq(commitInfo)
        commit(log, changes).tryCommit(version, lines.mkString("\n"), noRowIds)
      }
      var checked = Vector.empty[Seq[(String, Option[DeletionVectorDescriptor])]]
      val reads = new ReadSet {
        override def isEmpty: Boolean = false
        override def wholeTable: Boolean = false
        override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] = None
        override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
          removed.find(_.path == "read")
        override def firstRemovedByRows(deleted: Seq[ConcurrentlyDeletedRows])
            : Option[RemoveFile] = {
          checked :+= deleted.map(rows => rows.remove.path -> rows.left.flatMap(_.deletionVector))
          deleted.find(rows => rows.remove.path == "read" && rows.left.isEmpty).map(_.remove)
        }
      }
      val mine = commit(log, CommitFiles(), reads = ReadSet.union(ReadSet.nothing, reads))
      winners.indices.foreach(version => mine.winningCommit(version))
      val found = winners.indices.map(version => mine.hasDeletedRow(s"[$version]"))
      assertEquals(found, Seq(false, true, false, true))
      val (first, second) = (Seq("read" -> Option(vector)), Seq("other" -> None, "read" -> None))
      assertEquals(checked, Vector(first, second))
      assert(mine.hasDeletedRow("[0, 1, 2]"), "all winners are checked together")
      assertEquals(checked.last, first ++ second)
      assert(mine.hasDeletedRow("[0, 3]"), "rows were moved before they were deleted")
      assertEquals(checked.size, 3)
  }

  log.test("a read set without row checks conflicts on every file that it has read") { log =>
    val winner =
      commit(log, CommitFiles(Seq(add("a", 5).remove(1)), Seq(add("a", 5, Some(vector)))))
    winner.tryCommit(0, (commitInfo +: definition).mkString("\n"), noRowIds)
    val mine = commit(log, CommitFiles(), reads = ReadSet.everything)
    assert(mine.hasDeletedRow("[0]"))
  }

  log.test("counts distinguish new, removed and changed files") { _ =>
    val changes = CommitFiles(
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

  // Protocol: writer-row-tracking-2, writer-row-tracking-4
  log.test("new files get row IDs and the version, changed files keep theirs") {
    log =>
      val existing = add("existing", 4).copy(baseRowId = Some(2), defaultRowCommitVersion = Some(0))
      val changes = CommitFiles(
        Seq(existing.remove(1)),
        Seq(add("a", 10), existing.copy(deletionVector = Some(vector)), add("b", 3))
      )
      assertEquals(changes.summary.get("rowsWithoutRowIds").asLong, 13L)
      commit(log, changes).tryCommit(0, (commitInfo +: definition).mkString("\n"), 20)
      val adds = log.commit(0).adds.map(a => a.path -> (a.baseRowId, a.defaultRowCommitVersion))
      assertEquals(
        adds.toMap,
        Map(
          "a" -> (Some(20L), Some(0L)),
          "existing" -> (Some(2L), Some(0L)),
          "b" -> (Some(30L), Some(0L))
        )
      )
      assertEquals(log.commit(0).removes.next().baseRowId, Some(2L))
  }

  // Protocol: writer-row-tracking-2
  log.test("a file without a row count gets no row IDs, and nothing is written") { log =>
    val uncounted = CommitFiles(adds = Seq(add("a", 1).copy(stats = None)))
    val error = intercept[DeltaicThrowable] {
      commit(log, uncounted).tryCommit(0, (commitInfo +: definition).mkString("\n"), 0)
    }
    assertEquals(error.condition, "DELTAIC_ROW_COUNT_UNKNOWN")
    assert(!log.exists)
  }

  log.test("a winner that re-adds a file conflicts with a commit that removes it") { log =>
    val lines = commitInfo +: definition :+
      """{"domainMetadata":{"domain":"delta.rowTracking","configuration":"{}","removed":false}}"""
    val withRowIds = add("old", 5).copy(dataChange = false, baseRowId = Some(0))
    commit(log, CommitFiles(adds = Seq(withRowIds))).tryCommit(0, lines.mkString("\n"), noRowIds)
    val mine = commit(log, CommitFiles(removes = Seq(add("old", 5).remove(1)))).winningCommit(0)
    assertEquals(Json.parse(mine).get("removedFileWeChange").asText, "old")
    assertEquals(Json.parse(mine).get("domains").get("delta.rowTracking").asText, "{}")
  }
}
