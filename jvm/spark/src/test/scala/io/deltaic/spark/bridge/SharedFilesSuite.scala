package io.deltaic.spark.bridge

import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog

/** Two commits that end rows of one file, over a real log and real deletion vectors. */
class SharedFilesSuite extends munit.FunSuite {

  private val noRowIds = -1L
  private val header = Seq(
    """{"commitInfo":{"timestamp":1,"operation":"DELETE"}}""",
    """{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],""" +
      """"writerFeatures":["deletionVectors"]}}""",
    ActionJson.write(
      Metadata("id", schemaString = """{"type":"struct","fields":[]}""", createdTimeMs = Some(1))
    )
  ).mkString("\n")

  /** A log, and what tests do with it. */
  private final class Table {
    val log =
      new DeltaLog(new Path(Files.createTempDirectory("deltaic-shared").toUri), new Configuration())
    val vectors = new DeletionVectorStore(log.conf)

    /** The file after these rows ended, under a vector in the log or, if `inFile`, in a file. */
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
      AddFile(
        path,
        Map.empty,
        sizeBytes = 100,
        modificationTimeMs = 1,
        dataChange = true,
        stats = Some(s"""{"numRecords":$rowsInFile}"""),
        deletionVector = descriptor,
        baseRowId = Some(7),
        defaultRowCommitVersion = Some(3)
      )
    }

    def commit(
        changes: FileChanges,
        restEnded: Boolean = true,
        reads: ReadSet = ReadSet.nothing
    ): PreparedCommit = new PreparedCommit(
      CommitRequest(
        log,
        -1,
        "DELETE",
        Map.empty,
        Json.obj(),
        isBlindAppend = false,
        Map.empty,
        changes,
        reads,
        rowEnds = Some(RowEnds(restEnded, 0, maxVectorFileBytes, inlineBytes = 4096)),
        vectorFiles = changes.adds.flatMap(_.deletionVector).flatMap(_.absolutePath(log.table))
      ),
      _ => ()
    )

    def ending(before: AddFile, after: AddFile*): PreparedCommit =
      commit(FileChanges(Seq(before.remove(1)), after))

    def won(version: Long, changes: FileChanges): Unit =
      assertEquals(
        Json.parse(commit(changes).tryCommit(version, header, noRowIds)).get("status").asText,
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
    table.test(
      s"three commits that end other rows go one after the other (in files: $inFile, before: $old)"
    ) { t =>
      val base = t.file("f", old, inFile)
      val mine = t.ending(base, t.file("f", old ++ Seq(1, 2), inFile))
      var left = base
      for ((more, version) <- Seq(Seq(4L), Seq(5L, 6L), Seq(8L)).zipWithIndex) {
        val next = t.file("f", t.rows(left.deletionVector) ++ more, inFile)
          .copy(baseRowId = Some(70L + version), tags = Map("k" -> "v"))
        t.won(version.toLong, FileChanges(Seq(left.remove(1)), Seq(next)))
        val winner = Json.parse(mine.winner(version.toLong))
        assert(winner.get("sharesFiles").asBoolean)
        assert(winner.get("sharedRows").isNull)
        // The first two are followed at once, the third after another lost race.
        if (version > 0) {
          val counts = Json.parse(mine.follow(version.toLong))
          assertEquals(counts.get("numDeletionVectorsUpdated").asInt, 1)
        }
        left = next
      }
      mine.tryCommit(3, header, noRowIds)
      val (remove, add) = (t.log.commit(3).removes.next(), t.log.commit(3).adds.next())
      assertEquals(remove.deletionVector, left.deletionVector, "the file as it was right before")
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

  /** Every other row of a file of many ended. */
  private def halved(t: Table, path: String, first: Long, rows: Long, inFile: Boolean): AddFile =
    t.file(path, first until first + 2 * rows by 2, inFile)
      .copy(stats = Some("""{"numRecords":100000}"""))

  for ((ours, theirs, staysInLog) <- Seq((500L, 100L, true), (1900L, 400L, false)))
    table.test(s"a vector of $ours rows in the log and $theirs more: in the log, $staysInLog") {
      t =>
        val base = halved(t, "f", 0, 0, inFile = false)
        val mine = t.ending(base, halved(t, "f", 0, ours, inFile = false))
        t.won(0, FileChanges(Seq(base.remove(1)), Seq(halved(t, "f", 1, theirs, inFile = false))))
        mine.winner(0)
        mine.follow(0)
        mine.tryCommit(1, header, noRowIds)
        val vector = t.log.commit(1).adds.next().deletionVector.get
        assertEquals(vector.cardinality, ours + theirs)
        assertEquals(vector.storageType == DeletionVectorDescriptor.Inline, staysInLog)
        assertEquals(t.vectorFiles.isEmpty, staysInLog)
    }

  table.test("vectors that follow others lie in files of the size that was asked for") { t =>
    val paths = (0 until 4).map(i => s"f$i")
    val base = paths.map(halved(t, _, 0, 0, inFile = false))
    val ours = paths.map(halved(t, _, 0, 1500, inFile = true))
    val mine = t.commit(FileChanges(base.map(_.remove(1)), ours))
    val theirs = paths.map(halved(t, _, 1, 9, inFile = false))
    t.won(0, FileChanges(base.map(_.remove(1)), theirs))
    mine.winner(0)
    mine.follow(0)
    mine.tryCommit(1, header, noRowIds)
    val files = t.log.commit(1).adds.flatMap(_.deletionVector).flatMap(_.absolutePath(t.log.table))
    assertEquals(files.map(_.getName).toSet.size, paths.size)
  }

  table.test("many shared files are followed, and only they") { t =>
    val paths = (0 until 600).map(i => s"f$i")
    val base = paths.map(t.file(_, Nil))
    val mine = t.commit(FileChanges(base.map(_.remove(1)), paths.map(t.file(_, Seq(1)))))
    val (shared, own) = base.splitAt(500)
    t.won(0, FileChanges(shared.map(_.remove(1)), shared.map(f => t.file(f.path, Seq(2)))))
    assert(Json.parse(mine.winner(0)).get("sharesFiles").asBoolean)
    mine.follow(0)
    mine.tryCommit(1, header, noRowIds)
    val left = t.log.commit(1).adds.map(add => add.path -> t.rows(add.deletionVector)).toMap
    assertEquals(
      left,
      (shared.map(_.path -> Seq(1L, 2L)) ++ own.map(_.path -> Seq(1L))).toMap[String, Seq[Long]]
    )
    val removed = t.log.commit(1).removes.map(r => r.path -> t.rows(r.deletionVector)).toMap
    assertEquals(removed.count(_._2 == Seq(2L)), 500)
  }

  table.test("rows that both end are counted, by a vector or with the whole file") { t =>
    val base = t.file("a%20b", Seq(0))
    val mine = t.ending(base, t.file("a%20b", Seq(0, 1, 2, 3)))
    val all = t.ending(base)
    val spelled = t.file(s"${t.log.table}/a%20b", Seq(0, 2, 3, 4))
    t.won(0, FileChanges(Seq(base.remove(1)), Seq(spelled)))
    for ((commit, count) <- Seq(mine -> 2, all -> 3)) {
      val winner = Json.parse(commit.winner(0))
      assertEquals(winner.get("sharedRows").get("rows").asInt, count)
      assertEquals(winner.get("sharedRows").get("path").asText, base.path)
      assert(!winner.get("sharesFiles").asBoolean)
    }
  }

  table.test("a file of which both leave nothing is removed as the other one left it") { t =>
    val base = t.file("f", Nil)
    val mine = t.ending(base, t.file("f", 0L to 4L))
    val theirs = t.file("f", 5L to 9L)
    t.won(0, FileChanges(Seq(base.remove(1)), Seq(theirs)))
    assert(Json.parse(mine.winner(0)).get("sharesFiles").asBoolean)
    val counts = Json.parse(mine.follow(0))
    assertEquals(counts.get("numRemoved").asInt, 1)
    assertEquals(counts.get("numDeletionVectorsAdded").asInt, 0)
    mine.tryCommit(1, header, noRowIds)
    assertEquals(t.log.commit(1).adds.toSeq, Nil)
    assertEquals(t.log.commit(1).removes.next().deletionVector, theirs.deletionVector)
  }

  table.test("a file that was only described anew is taken as it is now described") { t =>
    val base = t.file("f", Seq(1)).copy(baseRowId = None, defaultRowCommitVersion = None)
    val mine = t.ending(base, base.copy(deletionVector = t.file("f", Seq(1, 2)).deletionVector))
    val all = t.ending(base)
    val described = base.copy(dataChange = false, baseRowId = Some(40))
    t.won(0, FileChanges(adds = Seq(described)))
    for (commit <- Seq(mine, all)) {
      assert(Json.parse(commit.winner(0)).get("sharesFiles").asBoolean)
      commit.follow(0)
    }
    assertEquals(Json.parse(mine.summary()).get("files").get("freshRows").asLong, 0L)
    all.tryCommit(1, header, noRowIds)
    assertEquals(t.log.commit(1).removes.next().baseRowId, Some(40L))
  }

  table.test("where rows came back, moved or were rewritten, no rows can be told apart") { t =>
    val base = t.file("f", Seq(1, 2))
    def mine: PreparedCommit = t.ending(base, t.file("f", Seq(1, 2, 3)))
    t.won(0, FileChanges(Seq(base.remove(1)), Seq(t.file("f", Seq(1, 5)))))
    assertEquals(Json.parse(mine.winner(0)).get("removedFileRemoved").asText, "f")

    val moved = base.remove(1).copy(dataChange = false)
    t.won(1, FileChanges(Seq(moved), Seq(t.file("other", Nil).copy(dataChange = false))))
    val compaction = Json.parse(mine.winner(1))
    assertEquals(compaction.get("movedFile").asText, "f")
    assert(compaction.get("removedFileRemoved").isNull)

    t.won(2, FileChanges(Seq(base.remove(1)), Seq(t.file("f", Seq(1, 2, 6)))))
    val copies = FileChanges(Seq(base.remove(1)), Seq(t.file("copy", Nil)))
    val rewriting = t.commit(copies, restEnded = false).winner(2)
    assertEquals(Json.parse(rewriting).get("removedFileRemoved").asText, "f")
  }

  table.test("a file that only lost rows holds no new ones, one that got some back does") { t =>
    val (few, more) = (t.file("f", Seq(1)), t.file("f", Seq(1, 2), inFile = true))
    t.won(0, FileChanges(Seq(few.remove(1)), Seq(more)))
    t.won(1, FileChanges(Seq(more.remove(1)), Seq(few)))
    val reader = t.commit(FileChanges(), reads = ReadSet.everything)
    assert(Json.parse(reader.winner(0)).get("addMatchingReads").isNull)
    assert(reader.hasMatchingRow("[1]"))
    assert(!reader.hasMatchingRow("[0]"))
    assert(reader.hasMatchingRow("[0, 1]"))
    assertEquals(Json.parse(reader.winner(1)).get("addMatchingReads").asText, "f")
  }

  table.test("a commit that was abandoned leaves no vector behind when it follows") { t =>
    val base = t.file("f", Nil)
    val mine = t.ending(base, t.file("f", 1L to 2L, inFile = true))
    t.won(0, FileChanges(Seq(base.remove(1)), Seq(t.file("f", Seq(9)))))
    mine.winner(0)
    assert(mine.abandon())
    assertEquals(mine.ownVectorFiles.map(_.getName).toSet, t.vectorFiles)
    val error = intercept[DeltaicThrowable](mine.follow(0))
    assertEquals(error.condition, "DELTAIC_COMMIT_ABANDONED")
    assertEquals(mine.ownVectorFiles.map(_.getName).toSet, t.vectorFiles)
  }
}
