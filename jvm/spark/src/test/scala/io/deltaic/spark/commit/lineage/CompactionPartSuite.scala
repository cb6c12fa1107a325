package io.deltaic.spark.commit.lineage

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.commit.{CommitFiles, LoggedFile}

class CompactionPartSuite extends munit.FunSuite {

  private def file(path: String, rows: Long, lineage: Option[Lineage] = None): AddFile =
    LoggedFile(path, rows, dataChange = false).copy(
      partitionValues = Map("p" -> "1"),
      sizeBytes = 10 * rows,
      tags = Map("theirs" -> "kept") ++ lineage.map(_.tag)
    )

  private def output(path: String, first: Int, from: Long, rows: Long*): AddFile =
    file(path, rows.map(_.abs).sum, Some(Lineage(first, from, rows)))

  /** Inputs of ten rows each. */
  private val inputs: IndexedSeq[RemoveFile] =
    "abcde".map(name => file(name.toString, 10).remove(3, dataChange = false))

  /** The rows of `a` and `b` are in x, those of `c` in x and y, those of `d` and `e` in z. */
  private val outputs =
    Seq(output("x", 0, 0, 10, 10, 4), output("y", 2, 4, 6), output("z", 3, 0, 10, 10))

  private def of(
      changed: Set[String],
      removes: IndexedSeq[RemoveFile] = inputs,
      adds: Seq[AddFile] = outputs
  ): Option[Seq[(Seq[String], Seq[String])]] =
    CompactionPart.of(removes, adds, remove => changed(remove.path), CommitFiles.rowsIn)
      .map(_.map(part => part.outputs.map(_.path) -> part.inputs.map(_.path)))

  private val first = Seq("x", "y") -> Seq("a", "b", "c")
  private val second = Seq("z") -> Seq("d", "e")

  test("a part has all files that share rows, directly or not") {
    Seq("a", "b", "c").foreach(name => assertEquals(of(Set(name)), Some(Seq(first)), name))
    assertEquals(of(Set("a", "c")), Some(Seq(first)))
    assertEquals(of(Set("e")), Some(Seq(second)))
    assertEquals(of(Set("e", "b")), Some(Seq(first, second)))
  }

  // Protocol: writer-row-tracking-13
  test("inputs are as they were, and lose the lineage that counts by an older commit") {
    val older = inputs.updated(
      3,
      output("d", 5, 0, 10).copy(
        deletionVector = Some(DeletionVectorDescriptor("u", "v", Some(1), 30, 2)),
        baseRowId = Some(40),
        defaultRowCommitVersion = Some(6)
      ).remove(3, dataChange = false)
    )
    val found = CompactionPart.of(
      older,
      outputs.updated(2, output("z", 3, 0, 8, 10)),
      _.path == "e",
      CommitFiles.rowsIn
    )
    val again = found.get.flatMap(_.restoredInputs(modificationTimeMs = 9))
    assertEquals(again.map(_.path), Seq("d", "e"))
    assertEquals(
      again.head,
      file("d", 10).copy(
        modificationTimeMs = 9,
        deletionVector = older(3).deletionVector,
        baseRowId = Some(40),
        defaultRowCommitVersion = Some(6)
      )
    )
  }

  private def ordered(path: String, rows: Long, first: Int, count: Int): AddFile =
    file(path, rows).copy(tags = Map(InputFiles(first, count).tag))

  test("files that name their inputs, and no positions, are one part with these") {
    val adds = Seq(ordered("x", 12, 0, 3), ordered("y", 18, 0, 3), output("z", 3, 0, 10, 10))
    Seq("a", "b", "c").foreach(name => assertEquals(of(Set(name), adds = adds), Some(Seq(first))))
    assertEquals(of(Set("e"), adds = adds), Some(Seq(second)))
    val wrong = Seq(
      adds.updated(0, ordered("x", 11, 0, 3)),
      adds.updated(0, ordered("x", 12, 0, 9)),
      adds.updated(0, file("x", 12).copy(tags = Map(InputFiles.Tag -> """{"first": -1}""")))
    )
    wrong.zipWithIndex.foreach { case (adds, i) =>
      assertEquals(of(Set("a"), adds = adds), None, i)
    }
  }

  test("inputs are named by what is left of the removes") {
    val inputs = InputFiles(3, 4)
    assertEquals(inputs.without(Set(0, 4, 9)), Some(InputFiles(2, 3)))
    assertEquals(inputs.without(Set(3, 4, 5, 6)), None)
    val add = ordered("x", 12, 3, 4)
    assertEquals(InputFiles.of(add), Some(inputs))
    assertEquals(InputFiles.of(InputFiles.without(add, Set(2, 6))), Some(InputFiles(2, 3)))
    assertEquals(InputFiles.without(add, Set(3, 4, 5, 6)).tags, Map.empty[String, String])
  }

  test("a file without live rows is a part of its own") {
    val removes = inputs :+ file("f", 5).copy(
      deletionVector = Some(DeletionVectorDescriptor("u", "v", Some(1), 30, 5))
    ).remove(3, dataChange = false)
    assertEquals(of(Set("f"), removes, outputs), Some(Seq(Nil -> Seq("f"))))
  }

  test("a file whose live rows are in no output is not reverted") {
    val taken = inputs :+ file("f", 5).remove(3, dataChange = false)
    assertEquals(of(Set("f"), taken), None)
    assertEquals(of(Set("a", "f"), taken), None)
    // A compaction that reverted another one, and counts all rows by files that are no longer in the table.
    val adds = Seq(output("x", 0, 0, -3, -2))
    assertEquals(of(Set("f"), IndexedSeq(taken.last), adds), None)
  }

  test("a commit that is not only a compaction, or whose lineage is wrong, is not reverted") {
    val adds = outputs
    Seq(
      inputs.updated(4, inputs(4).copy(dataChange = true)) -> adds,
      inputs -> (adds :+ file("new", 3).copy(dataChange = true)),
      inputs -> (adds :+ file("without lineage", 3)),
      inputs.updated(4, inputs(4).copy(stats = Some("""{"numRecords":9}"""))) -> adds,
      inputs.updated(4, inputs(4).copy(stats = None)) -> adds,
      inputs.updated(4, inputs(4).copy(sizeBytes = None)) -> adds,
      inputs.init -> adds,
      inputs -> adds.updated(2, adds(2).copy(stats = Some("""{"numRecords":21}"""))),
      inputs -> adds.updated(2, output("z", 3, 0, 10, 9)),
      inputs -> adds.updated(2, output("z", 4, 0, 10, 10))
    ).zipWithIndex.foreach { case ((removes, adds), i) =>
      assertEquals(of(Set("d", "e"), removes, adds), None, i)
    }
  }
}
