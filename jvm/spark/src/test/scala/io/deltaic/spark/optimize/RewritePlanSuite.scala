package io.deltaic.spark.optimize

import scala.util.Random

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.PartitionedFile

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/** Which files are rewritten, how they are cut into parts, and how parts are packed into files. */
class RewritePlanSuite extends munit.FunSuite {

  private val settings = OptimizeSettings(
    minFileBytes = 1000,
    maxFileBytes = 1000,
    maxDeletedRowsRatio = 0.05,
    maxDecodedFileBytes = 100000,
    minTaskBytes = 50,
    maxWriteAmplification = 4,
    checksStatistics = true
  )

  private def file(bytes: Long, deleted: Long = 0, rows: Option[Long] = Some(100)): AddFile =
    AddFile(
      s"file of $bytes, ${Random.nextInt()}",
      Map.empty,
      bytes,
      modificationTimeMs = 1,
      dataChange = true,
      stats = rows.map(n => s"""{"numRecords":$n}"""),
      deletionVector =
        Option.when(deleted > 0)(DeletionVectorDescriptor("u", "x", Some(1), 10, deleted))
    )

  private def selected(files: AddFile*): Seq[Long] = {
    val candidates = files.flatMap(RewriteCandidate.ofCompaction(_, settings))
    RewriteCandidate.selected(candidates, settings, decodedRatio = 2.0).map(_.file.sizeBytes).sorted
  }

  test("small files that fit together are rewritten") {
    assertEquals(selected(file(10), file(20)), Seq(10L, 20L))
    assertEquals(selected(file(10)), Nil)
    assertEquals(selected(file(10), file(1000), file(2000)), Nil)
    assertEquals(selected(file(600), file(700)), Nil, "they would be two files again")
    assertEquals(selected(file(900), file(950), file(10), file(20)), Seq(10L, 20L, 900L))
  }

  test("heavily deleted files are rewritten, even alone") {
    assertEquals(selected(file(5000, deleted = 6)), Seq(5000L))
    assertEquals(selected(file(5000, deleted = 5)), Nil)
    assertEquals(selected(file(5000, deleted = 1, rows = None)), Seq(5000L))
    assertEquals(selected(file(600, deleted = 50), file(650)), Seq(600L, 650L))
  }

  test("files that are large before compression are full") {
    val candidates = Seq(file(100), file(100)).flatMap(RewriteCandidate.ofCompaction(_, settings))
    assertEquals(RewriteCandidate.selected(candidates, settings, decodedRatio = 600), Nil)
  }

  private def split(file: Int, bytes: Long): InputSplit = InputSplit(
    file,
    PartitionedFile(
      InternalRow.empty,
      SparkPath.fromPathString(s"/$file"),
      0,
      bytes,
      modificationTime = 0,
      fileSize = bytes
    )
  )

  test("parts have about the same size and all splits in their order") {
    for (run <- 0 until 50) {
      val random = new Random(run)
      val splits = (0 until 1 + random.nextInt(100)).map(split(_, 1L + random.nextInt(40)))
      val parts = RewritePart.of(0, Nil, splits, partBytes = 100)
      assertEquals(parts.flatMap(_.splits), splits)
      val bytes = parts.map(_.splits.map(_.split.length).sum)
      if (parts.size > 1) assert(bytes.forall(b => b > 30 && b < 200), bytes.toString)
    }
  }

  test("parts are packed up to the size of a file, and their rows stay in order") {
    val parts = Seq(400L, 500L, 300L, 600L, 0L, 700L).zipWithIndex.map { case (bytes, i) =>
      val splits = Seq(split(i, 1), split(i + 1, 1))
      val add = Option.when(bytes > 0)(file(bytes))
      val rows = if (bytes > 0) Seq(3L, 4L) else Seq(0L, 0L)
      RewritePart(0, Nil, splits) -> WrittenPart(add, bytes, rows)
    }
    val files = OutputFile.pack(parts, settings)
    assertEquals(files.map(_.parts.map(_.sizeBytes).sum), Seq(900L, 900L, 700L))
    assertEquals(
      files.map(_.inputs),
      Seq(
        Seq(InputRows(0, 0, 3), InputRows(1, 0, 7), InputRows(2, 0, 4)),
        Seq(InputRows(2, 4, 3), InputRows(3, 0, 7), InputRows(4, 0, 4)),
        Seq(InputRows(5, 0, 3), InputRows(6, 0, 4))
      )
    )
    assertEquals(files.head.lineage(10).get.tag._2, """{"first":10,"rows":[3,7,4]}""")
  }

  test("files of ordered parts are as close to their size as the parts allow") {
    val parts = Seq.fill(7)(RewritePart(0, Nil, Nil) -> WrittenPart(Some(file(210)), 210, Seq(3L)))
    def sizes(areOrdered: Boolean): Seq[Long] =
      OutputFile.pack(parts, settings, areOrdered).map(_.parts.map(_.sizeBytes).sum)
    assertEquals(sizes(areOrdered = true), Seq(1050L, 420L))
    assertEquals(sizes(areOrdered = false), Seq(840L, 630L))
  }
}
