package io.deltaic.spark.changes

import org.apache.hadoop.fs.Path

import io.deltaic.log.CommitFile
import io.deltaic.protocol._

/** Which files of a commit contain its changes, from the protocol's rules alone. */
class CommitChangesSuite extends munit.FunSuite {
  import RowSelection._

  private val table = new Path("file:/tables/t")
  private val old = vector("old")
  private val now = vector("new")

  private def vector(name: String) =
    DeletionVectorDescriptor("p", s"file:///$name.bin", Some(1), 10, 1)

  private def add(
      path: String,
      dv: Option[DeletionVectorDescriptor] = None,
      dataChange: Boolean = true
  ): AddFile =
    AddFile(
      path,
      Map("p" -> "1"),
      10,
      5,
      dataChange,
      stats = Some("of the add"),
      deletionVector = dv
    )

  private def remove(
      path: String,
      dv: Option[DeletionVectorDescriptor] = None,
      dataChange: Boolean = true
  ): RemoveFile =
    add(path, dv).remove(6, dataChange).copy(stats = Some("of the remove"))

  private def changes(actions: Action*): Seq[FileChange] =
    CommitChanges.of(table, new CommitFile(3, 0, actions))

  /** Path, kind and rows of each change. */
  private def shown(actions: Action*): Seq[(String, Option[String], RowSelection)] =
    changes(actions: _*).map(c => (c.file.path, c.changeType, c.rows))

  // Protocol: reader-addcdcfile-3
  test("adds are inserts and removes are deletes, of the rows their vectors leave") {
    assertEquals(
      shown(add("a"), remove("b"), add("c", Some(now)), remove("d", Some(old))).toSet,
      Set[(String, Option[String], RowSelection)](
        ("a", Some("insert"), AllBut(None)),
        ("b", Some("delete"), AllBut(None)),
        ("c", Some("insert"), AllBut(Some(now))),
        ("d", Some("delete"), AllBut(Some(old)))
      )
    )
  }

  // Protocol: add-cdc-file-1, change-data-files-1, reader-addcdcfile-1, reader-addcdcfile-2
  test("cdc files alone describe the changes of a commit that has any") {
    val cdc = AddCdcFile("_change_data/c", Map("p" -> "2"), 7)
    val found = changes(remove("a"), add("b"), cdc)
    assertEquals(
      found.map(c => (c.file.path, c.changeType, c.rows)),
      Seq(("_change_data/c", None, AllBut(None)))
    )
    assertEquals(
      found.map(c => (c.file.partitionValues, c.file.sizeBytes)),
      Seq((Map("p" -> "2"), 7L))
    )
  }

  test("actions that do not change data, or are not on files, are no changes") {
    val metadata = Metadata("m", schemaString = Metadata.EmptySchema)
    assertEquals(
      shown(
        metadata,
        Protocol(1, 4),
        add("a", dataChange = false),
        remove("b", dataChange = false),
        SetTransaction("app", 1)
      ),
      Nil
    )
  }

  test("a first vector deletes its rows") {
    assertEquals(
      shown(remove("a"), add("a", Some(now))),
      Seq(("a", Some("delete"), Only(now, None)))
    )
  }

  test("a removed vector restores its rows") {
    assertEquals(
      shown(add("a"), remove("a", Some(old))),
      Seq(("a", Some("insert"), Only(old, None)))
    )
  }

  // Protocol: dv-functional-5, reader-addcdcfile-3
  test("a new vector deletes the rows that only it marks and restores those it no longer marks") {
    assertEquals(
      shown(remove("a", Some(old)), add("a", Some(now))),
      Seq(
        ("a", Some("delete"), Only(now, Some(old))),
        ("a", Some("insert"), Only(old, Some(now)))
      )
    )
  }

  test("the same vector, or the same file under an equivalent path, is no change") {
    assertEquals(shown(remove("a", Some(now)), add("a", Some(now))), Nil)
    assertEquals(shown(remove("a%20b"), add("file:/tables/t/a%20b")), Nil)
  }

  test("deleted rows have the old bounds, restored rows the new ones") {
    val found = changes(remove("a", Some(old)), add("a", Some(now)))
    assertEquals(found.map(_.file.stats), Seq(Some("of the remove"), Some("of the add")))
    assert(found.forall(_.file.deletionVector.isEmpty))
  }

  test("a remove without size and partition values is rejected, unless its add has them") {
    val bare = RemoveFile("a", Some(6), dataChange = true)
    val error = intercept[DeltaicThrowable](changes(bare))
    assertEquals(error.condition, "DELTAIC_CHANGES_REMOVED_FILE_UNKNOWN")
    assertEquals(error.parameters, Map("table" -> table.toString, "version" -> "3", "file" -> "a"))
    assertEquals(changes(bare, add("a", Some(now))).map(_.file.sizeBytes), Seq(10L))
  }

  test("a MERGE whose metrics report no changed rows has no changes") {
    def info(updated: Int): CommitInfo = CommitInfo(
      ActionJson.mapper
        .readTree(
          s"""{"operation":"MERGE","operationMetrics":{"numTargetRowsInserted":"0",
             |"numTargetRowsUpdated":"$updated","numTargetRowsDeleted":"0"}}""".stripMargin
        )
        .asInstanceOf[com.fasterxml.jackson.databind.node.ObjectNode]
    )
    assertEquals(shown(info(0), remove("a"), add("b")), Nil)
    assertEquals(shown(info(1), remove("a"), add("b")).size, 2)
  }
}
