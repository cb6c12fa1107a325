package io.deltaic.spark.commit.lineage

import io.deltaic.protocol.{AddFile, RemoveFile}
import io.deltaic.spark.commit.{CommitFiles, LoggedFile}

class RevertedCompactionsSuite extends munit.FunSuite {

  private def file(path: String): AddFile = LoggedFile(path, 10, dataChange = false)

  private val (a, b, c) = (file("a"), file("b"), file("c"))
  private val compacted = LoggedFile("x", 20, dataChange = false)
    .copy(tags = Map(Lineage(0, 0, Seq(10, 10)).tag))

  private def removed(files: AddFile*): Seq[RemoveFile] = files.map(_.remove(3, dataChange = false))

  private def commit() = new RevertedCompactions(_.stripPrefix("./"), CommitFiles.rowsIn)

  test(
    "the compacted file is removed, and inputs that the commit does not change are added again"
  ) {
    val taken = commit()
    assertEquals(
      taken.revert(removed(a, c), Seq(compacted), removed(a, b), 9, 5),
      Some((Seq(compacted.remove(9, dataChange = false)), Seq(b.copy(modificationTimeMs = 5))))
    )
    assert(taken.isOutput("./x"))
    assertEquals(Seq("./b", "a", "c", "x").filter(taken.isAddedAgain), Seq("./b"))
    assertEquals(taken.firstRemovedConcurrently(removed(a, c), Seq(compacted), removed(a, b)), None)
  }

  test("a file that a winner has removed, and that is not reverted, is gone") {
    val taken = commit()
    taken.revert(removed(a), Seq(compacted), removed(a, b), 9, 5)
    val gone = taken.firstRemovedConcurrently(removed(a, c), Nil, removed(c.copy(path = "./c")))
    assertEquals(gone.map(_.path), Some("c"))
    assertEquals(taken.firstRemovedConcurrently(removed(c), Seq(c), removed(c)), None)
  }

  test("nothing is left to do for what another commit has reverted") {
    val taken = commit()
    taken.revert(removed(a), Seq(compacted), removed(a, b), 9, 5)
    assertEquals(taken.revertedBy(Seq(c), removed(c)).again, Set.empty[String])
    val done = taken.revertedBy(Seq(a), removed(compacted))
    assertEquals(done, RevertedCompactions.AlreadyReverted(Set("x"), Set("b"), Set("a")))
    assert(!taken.isOutput("x"))
  }
}
