package io.deltaic.spark.bridge

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.changes.RowSelection

/** Which rows of a file are gone that were read, by what the log says of the file before and after. */
class TakenRowsSuite extends munit.FunSuite {

  private val (few, more) = (vector("few", 1), vector("more", 2))

  private def vector(id: String, rows: Long): DeletionVectorDescriptor =
    DeletionVectorDescriptor("u", id, Some(1), 40, rows)

  private def file(path: String, rows: Option[DeletionVectorDescriptor] = None): AddFile =
    AddFile(path, Map.empty, 100, 1, dataChange = true, deletionVector = rows)

  private def taken(path: String, left: AddFile*): TakenRows = {
    val removes: Seq[RemoveFile] = Seq(file(path).remove(1))
    TakenRows.in(removes, left, _.toLowerCase).head
  }

  test("those that were live when the file was read, if nothing is left of it") {
    assertEquals(taken("f", file("g")).from(file("f")), Some(RowSelection.AllBut(None)))
    assertEquals(taken("f").from(file("f", Some(few))), Some(RowSelection.AllBut(Some(few))))
  }

  test("those that its vector marks now and did not when it was read") {
    val left = taken("F", file("g"), file("f", Some(more)))
    assertEquals(left.from(file("f")), Some(RowSelection.Only(more, None)))
    assertEquals(left.from(file("f", Some(few))), Some(RowSelection.Only(more, Some(few))))
  }

  test("none if it is as it was read, whatever was with it in between, or if all rows are back") {
    assertEquals(taken("f", file("f", Some(few))).from(file("f", Some(few))), None)
    assertEquals(taken("f", file("f")).from(file("f", Some(few))), None)
  }
}
