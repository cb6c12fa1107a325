package io.deltaic.spark.commit

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.changes.RowSelection

/** The deleted rows among those that were read, by the log entries of the file before and after. */
class ConcurrentlyDeletedRowsSuite extends munit.FunSuite {

  private val (few, more) = (vector("few", 1), vector("more", 2))

  private def vector(id: String, rows: Long): DeletionVectorDescriptor =
    DeletionVectorDescriptor("u", id, Some(1), 40, rows)

  private def file(path: String, rows: Option[DeletionVectorDescriptor] = None): AddFile =
    AddFile(path, Map.empty, 100, 1, dataChange = true, deletionVector = rows)

  private def deleted(path: String, left: AddFile*): ConcurrentlyDeletedRows = {
    val removes: Seq[RemoveFile] = Seq(file(path).remove(1))
    ConcurrentlyDeletedRows.in(removes, left, _.toLowerCase).head
  }

  test("all rows that were live when the file was read, if the file is removed") {
    assertEquals(deleted("f", file("g")).from(file("f")), Some(RowSelection.AllBut(None)))
    assertEquals(deleted("f").from(file("f", Some(few))), Some(RowSelection.AllBut(Some(few))))
  }

  test("the rows that its vector has now and did not have when it was read") {
    val left = deleted("F", file("g"), file("f", Some(more)))
    assertEquals(left.from(file("f")), Some(RowSelection.Only(more, None)))
    assertEquals(left.from(file("f", Some(few))), Some(RowSelection.Only(more, Some(few))))
  }

  test("none if the file is as it was read, or if all its rows are restored") {
    assertEquals(deleted("f", file("f", Some(few))).from(file("f", Some(few))), None)
    assertEquals(deleted("f", file("f")).from(file("f", Some(few))), None)
  }
}
