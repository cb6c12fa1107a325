package io.deltaic.spark.commit

import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.util.Json

/** Two commits that delete rows of one file, with a real log and real deletion vectors. */
class DeletionVectorRebaseSuite extends munit.FunSuite {

  private val noRowIds = -1L
  private val commitInfo = Seq(
    """{"commitInfo":{"timestamp":1,"operation":"DELETE"}}""",
    """{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],""" +
      """"writerFeatures":["deletionVectors"]}}""",
    ActionJson.write(
      Metadata("id", schemaString = """{"type":"struct","fields":[]}""", createdTimeMs = Some(1))
    )
  ).mkString("\n")

  /** A log, and the operations of the tests on it. */
  private final class Table {
    val log =
      new DeltaLog(new Path(Files.createTempDirectory("deltaic-shared").toUri), new Configuration())
    val vectors = new DeletionVectorStore(log.conf)

    /** The file after these rows were deleted, with an inline vector or, if `inFile`, with one in a file. */
    def file(path: String, rows: Seq[Long], inFile: Boolean = false): AddFile = {
      val vector = DeletionVector.of(rows: _*)
      val descriptor =
        if (rows.isEmpty) None
        else if (!inFile) Some(vectors.inline(vector))
        else {
          val writer = vectors.newWriter(log.table)
          try Some(writer.add(vector))
          finally writer.close()
        }
      LoggedFile(path, rowsInFile).copy(
        deletionVector = descriptor,
        baseRowId = Some(7),
        defaultRowCommitVersion = Some(3)
      )
    }

    def commit(
        changes: CommitFiles,
        restDeleted: Boolean = true,
        reads: ReadSet = ReadSet.nothing
    ): PreparedCommit = new PreparedCommit(
      CommitRequest(
        log,
        TableRead(-1, reads),
        OperationInfo("DELETE"),
        Plans.ofRows,
        isBlindAppend = false,
        changes,
        rebaseSettings =
          Some(RebaseSettings(restDeleted, 0, maxVectorFileBytes, inlineBytes = 4096)),
        vectorFiles = changes.adds.flatMap(_.deletionVector).flatMap(_.absolutePath(log.table))
      ),
      _ => ()
    )

    def deleting(before: AddFile, after: AddFile*): PreparedCommit =
      commit(CommitFiles(Seq(before.remove(1)), after))

    def commitWinner(version: Long, changes: CommitFiles): Unit =
      assertEquals(
        Json.parse(commit(changes).tryCommit(version, commitInfo, noRowIds)).get("status").asText,
        "committed"
      )

    def rows(descriptor: Option[DeletionVectorDescriptor]): Seq[Long] = {
      val found = Seq.newBuilder[Long]
      descriptor.foreach(vectors.read(log.table, "", _).forEach(found += _))
      found.result()
    }

    def vectorFiles: Set[String] =
      new java.io.File(log.table.toUri).list().filter(_.endsWith(".bin")).toSet
  }

  private val rowsInFile = 10L

  private val maxVectorFileBytes = 4000L

  private val table = FunFixture[Table](
    _ => new Table,
    table => FileUtils.deleteDirectory(new java.io.File(table.log.table.toUri))
  )

  for (inFile <- Seq(false, true); old <- Seq(Seq.empty[Long], Seq(9L)))
    // Protocol: per-file-statistics-1, per-file-statistics-2
    table.test(
      s"a rebase onto three commits that delete other rows (in files: $inFile, before: $old)"
    ) { t =>
      val base = t.file("f", old, inFile)
      val mine = t.deleting(base, t.file("f", old ++ Seq(1, 2), inFile))
      var left = base
      for ((more, version) <- Seq(Seq(4L), Seq(5L, 6L), Seq(8L)).zipWithIndex) {
        val next = t.file("f", t.rows(left.deletionVector) ++ more, inFile)
          .copy(baseRowId = Some(70L + version), tags = Map("k" -> "v"))
        t.commitWinner(version.toLong, CommitFiles(Seq(left.remove(1)), Seq(next)))
        val winner = Json.parse(mine.winningCommit(version.toLong))
        assert(winner.get("needsDeletionVectorRebase").asBoolean)
        assert(winner.get("concurrentlyDeletedRows").isNull)
        // Rebased onto the first two at once, and onto the third after another lost race.
        if (version > 0) {
          val counts = Json.parse(mine.rebaseDeletionVectors(version.toLong))
          assertEquals(counts.get("numDeletionVectorsUpdated").asInt, 1)
        }
        left = next
      }
      mine.tryCommit(3, commitInfo, noRowIds)
      val (remove, add) = (t.log.commit(3).removes.next(), t.log.commit(3).adds.next())
      assertEquals(remove.deletionVector, left.deletionVector, "as the last winner left it")
      assertEquals(t.rows(add.deletionVector), (Seq(1L, 2L, 4L, 5L, 6L, 8L) ++ old).sorted)
      assertEquals(
        add.copy(deletionVector = None, stats = None),
        left.copy(deletionVector = None, stats = None)
      )
      val stats = Json.parse(add.stats.get)
      assertEquals(stats.get("numRecords").asLong, rowsInFile)
      assertEquals(stats.get("tightBounds").asBoolean, false)
      val referred = t.log.commits(0, 3).flatMap { case (commit, _) =>
        (commit.adds.map(_.deletionVector) ++ commit.removes.map(_.deletionVector)).flatten
          .flatMap(_.absolutePath(t.log.table)).map(_.getName)
      }.toSet
      assertEquals(t.vectorFiles -- referred, Set.empty[String], "nothing is left of the attempts")
    }

  /** A large file with every other row deleted. */
  private def halved(t: Table, path: String, first: Long, rows: Long, inFile: Boolean): AddFile =
    t.file(path, first until first + 2 * rows by 2, inFile)
      .copy(stats = Some("""{"numRecords":100000}"""))

  for ((ours, theirs, staysInLog) <- Seq((500L, 100L, true), (1900L, 400L, false)))
    table.test(s"an inline vector of $ours rows stays inline with $theirs more: $staysInLog") {
      t =>
        val base = halved(t, "f", 0, 0, inFile = false)
        val mine = t.deleting(base, halved(t, "f", 0, ours, inFile = false))
        val left = halved(t, "f", 1, theirs, inFile = false)
        t.commitWinner(0, CommitFiles(Seq(base.remove(1)), Seq(left)))
        mine.winningCommit(0)
        mine.rebaseDeletionVectors(0)
        mine.tryCommit(1, commitInfo, noRowIds)
        val vector = t.log.commit(1).adds.next().deletionVector.get
        assertEquals(vector.cardinality, ours + theirs)
        assertEquals(vector.storageType == DeletionVectorDescriptor.Inline, staysInLog)
        assertEquals(t.vectorFiles.isEmpty, staysInLog)
    }

  table.test("vectors of a rebase are stored in files of the configured size") { t =>
    val paths = (0 until 4).map(i => s"f$i")
    val base = paths.map(halved(t, _, 0, 0, inFile = false))
    val ours = paths.map(halved(t, _, 0, 1500, inFile = true))
    val mine = t.commit(CommitFiles(base.map(_.remove(1)), ours))
    val theirs = paths.map(halved(t, _, 1, 9, inFile = false))
    t.commitWinner(0, CommitFiles(base.map(_.remove(1)), theirs))
    mine.winningCommit(0)
    mine.rebaseDeletionVectors(0)
    mine.tryCommit(1, commitInfo, noRowIds)
    val files = t.log.commit(1).adds.flatMap(_.deletionVector).flatMap(_.absolutePath(t.log.table))
    assertEquals(files.map(_.getName).toSet.size, paths.size)
  }

  // Protocol: dv-step-3-dml-with-existing-dvs-1
  table.test("a rebase changes all shared files, and only them") { t =>
    val paths = (0 until 600).map(i => s"f$i")
    val base = paths.map(t.file(_, Nil))
    val mine = t.commit(CommitFiles(base.map(_.remove(1)), paths.map(t.file(_, Seq(1)))))
    val (shared, own) = base.splitAt(500)
    t.commitWinner(0, CommitFiles(shared.map(_.remove(1)), shared.map(f => t.file(f.path, Seq(2)))))
    assert(Json.parse(mine.winningCommit(0)).get("needsDeletionVectorRebase").asBoolean)
    mine.rebaseDeletionVectors(0)
    mine.tryCommit(1, commitInfo, noRowIds)
    val left = t.log.commit(1).adds.map(add => add.path -> t.rows(add.deletionVector)).toMap
    assertEquals(
      left,
      (shared.map(_.path -> Seq(1L, 2L)) ++ own.map(_.path -> Seq(1L))).toMap[String, Seq[Long]]
    )
    val removed = t.log.commit(1).removes.map(r => r.path -> t.rows(r.deletionVector)).toMap
    assertEquals(removed.count(_._2 == Seq(2L)), 500)
  }

  table.test("rows that both commits delete are counted, by a vector or with the whole file") { t =>
    val base = t.file("a%20b", Seq(0))
    val mine = t.deleting(base, t.file("a%20b", Seq(0, 1, 2, 3)))
    val all = t.deleting(base)
    val spelled = t.file(s"${t.log.table}/a%20b", Seq(0, 2, 3, 4))
    t.commitWinner(0, CommitFiles(Seq(base.remove(1)), Seq(spelled)))
    for ((commit, count) <- Seq(mine -> 2, all -> 3)) {
      val winner = Json.parse(commit.winningCommit(0))
      assertEquals(winner.get("concurrentlyDeletedRows").get("count").asInt, count)
      assertEquals(winner.get("concurrentlyDeletedRows").get("path").asText, base.path)
      assert(!winner.get("needsDeletionVectorRebase").asBoolean)
    }
  }

  table.test("a file of which both together leave no row is removed") { t =>
    val base = t.file("f", Nil)
    val mine = t.deleting(base, t.file("f", 0L to 4L))
    val theirs = t.file("f", 5L to 9L)
    t.commitWinner(0, CommitFiles(Seq(base.remove(1)), Seq(theirs)))
    assert(Json.parse(mine.winningCommit(0)).get("needsDeletionVectorRebase").asBoolean)
    val counts = Json.parse(mine.rebaseDeletionVectors(0))
    assertEquals(counts.get("numRemoved").asInt, 1)
    assertEquals(counts.get("numDeletionVectorsAdded").asInt, 0)
    mine.tryCommit(1, commitInfo, noRowIds)
    assertEquals(t.log.commit(1).adds.toSeq, Nil)
    assertEquals(t.log.commit(1).removes.next().deletionVector, theirs.deletionVector)
  }

  // Protocol: writer-row-tracking-4
  table.test("a file whose add was only rewritten keeps its new metadata in a rebase") { t =>
    val base = t.file("f", Seq(1)).copy(baseRowId = None, defaultRowCommitVersion = None)
    val mine = t.deleting(base, base.copy(deletionVector = t.file("f", Seq(1, 2)).deletionVector))
    val all = t.deleting(base)
    val described = base.copy(dataChange = false, baseRowId = Some(40))
    t.commitWinner(0, CommitFiles(adds = Seq(described)))
    for (commit <- Seq(mine, all)) {
      assert(Json.parse(commit.winningCommit(0)).get("needsDeletionVectorRebase").asBoolean)
      commit.rebaseDeletionVectors(0)
    }
    assertEquals(Json.parse(mine.summary()).get("files").get("rowsWithoutRowIds").asLong, 0L)
    all.tryCommit(1, commitInfo, noRowIds)
    assertEquals(t.log.commit(1).removes.next().baseRowId, Some(40L))
  }

  table.test("restored, moved or rewritten rows cannot be rebased") { t =>
    val base = t.file("f", Seq(1, 2))
    def mine: PreparedCommit = t.deleting(base, t.file("f", Seq(1, 2, 3)))
    t.commitWinner(0, CommitFiles(Seq(base.remove(1)), Seq(t.file("f", Seq(1, 5)))))
    assertEquals(Json.parse(mine.winningCommit(0)).get("removedFileWeChange").asText, "f")

    val moved = base.remove(1).copy(dataChange = false)
    t.commitWinner(1, CommitFiles(Seq(moved), Seq(t.file("other", Nil).copy(dataChange = false))))
    val compaction = Json.parse(mine.winningCommit(1))
    assertEquals(compaction.get("compactedFileWeChange").asText, "f")
    assert(compaction.get("removedFileWeChange").isNull)

    t.commitWinner(2, CommitFiles(Seq(base.remove(1)), Seq(t.file("f", Seq(1, 2, 6)))))
    val copies = CommitFiles(Seq(base.remove(1)), Seq(t.file("copy", Nil)))
    val rewriting = t.commit(copies, restDeleted = false).winningCommit(2)
    assertEquals(Json.parse(rewriting).get("removedFileWeChange").asText, "f")
  }

  table.test("a file that only lost rows holds no new rows, one with restored rows does") { t =>
    val (few, more) = (t.file("f", Seq(1)), t.file("f", Seq(1, 2), inFile = true))
    t.commitWinner(0, CommitFiles(Seq(few.remove(1)), Seq(more)))
    t.commitWinner(1, CommitFiles(Seq(more.remove(1)), Seq(few)))
    val reader = t.commit(CommitFiles(), reads = ReadSet.everything)
    assert(Json.parse(reader.winningCommit(0)).get("addedFileWeWouldRead").isNull)
    assert(reader.hasMatchingRow("[1]"))
    assert(!reader.hasMatchingRow("[0]"))
    assert(reader.hasMatchingRow("[0, 1]"))
    assertEquals(Json.parse(reader.winningCommit(1)).get("addedFileWeWouldRead").asText, "f")
  }

  table.test("the rebase of an abandoned commit leaves no vector file behind") { t =>
    val base = t.file("f", Nil)
    val mine = t.deleting(base, t.file("f", 1L to 2L, inFile = true))
    t.commitWinner(0, CommitFiles(Seq(base.remove(1)), Seq(t.file("f", Seq(9)))))
    mine.winningCommit(0)
    assert(mine.abandon())
    assertEquals(mine.ownVectorFiles.map(_.getName).toSet, t.vectorFiles)
    val error = intercept[DeltaicThrowable](mine.rebaseDeletionVectors(0))
    assertEquals(error.condition, "DELTAIC_COMMIT_ABANDONED")
    assertEquals(mine.ownVectorFiles.map(_.getName).toSet, t.vectorFiles)
  }
}
