package io.deltaic.replay

import java.nio.file.attribute.FileTime
import java.nio.file.{Files => LocalFiles}

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol._

/** Protocol § V2 Spec. [[GoldenTablesSuite]] compares golden tables with delta-spark. */
class V2CheckpointSuite extends munit.FunSuite {
  import CheckpointRows._

  private val first = "80a083e8-7026-4e79-81be-64bd76c43a11"
  private val second = "016ae953-37a9-438e-8683-9a9a4a79a395"
  private val features = Some(Set("v2Checkpoint"))
  private val protocol = Protocol(3, 7, features, features)
  private val metadata = Metadata("from-checkpoint", schemaString = Metadata.EmptySchema)

  private def uuid(version: Long, id: String, format: String) =
    f"$version%020d.checkpoint.$id.$format"
  private def classic(version: Long) = f"$version%020d.checkpoint.parquet"

  /** A table whose commit 0 differs from its checkpoint. */
  private def created(): TableBuilder =
    TableBuilder().commit(0, protocol, TableBuilder.metadata, add("from-commit"))

  private def json(table: TableBuilder, name: String, actions: Action*): Unit = {
    table.file(name, actions.map(ActionJson.write).mkString("", "\n", "\n"))
    ()
  }

  private def sidecar(table: TableBuilder, name: String, paths: String*): Unit =
    write(table, s"_sidecars/$name", schema(plainAdd))(paths.map(p => addRow(p) _): _*)

  private def paths(table: TableBuilder): List[String] = pathsOf(table.open().latest())

  private def pathsOf(snapshot: Snapshot): List[String] =
    (0 until snapshot.files.size).map(snapshot.files.path).toList.sorted

  // Protocol: reader-domain-metadata-4
  test("a JSON checkpoint without sidecars has inline file actions") {
    val table = created()
    json(
      table,
      uuid(0, first, "json"),
      CheckpointMetadata(0),
      metadata,
      protocol,
      SetTransaction("app", 7),
      DomainMetadata("d", "{}", removed = false),
      add("a"),
      add("gone").remove(System.currentTimeMillis)
    )
    val snapshot = table.open().latest()
    assertEquals(snapshot.metadata, metadata)
    assertEquals(snapshot.protocol, protocol)
    assertEquals(snapshot.transactions.keySet, Set("app"))
    assertEquals(snapshot.domains.keySet, Set("d"))
    assertEquals(pathsOf(snapshot), List("a"))
    assertEquals(snapshot.tombstones.map(_.path).toList, List("gone"))
    table.commit(1, add("b"), add("a").remove(1))
    assertEquals(paths(table), List("b"))
  }

  // Protocol: sidecar-file-information-1
  test("a JSON checkpoint with sidecars has their files, however their paths are spelled") {
    val table = created()
    sidecar(table, "one.parquet", "a", "b")
    sidecar(table, "t%wo.parquet", "c")
    val absolute = s"${table.path}/_delta_log/_sidecars/one.parquet"
    json(
      table,
      uuid(0, first, "json"),
      CheckpointMetadata(0),
      Sidecar(absolute, 1, 1),
      Sidecar("t%25wo.parquet", 1, 1),
      metadata,
      protocol
    )
    assertEquals(paths(table), List("a", "b", "c"))
    table.delete(f"${0}%020d.json").commit(1, add("d"))
    assertEquals(paths(table), List("a", "b", "c", "d"))
    assertEquals(table.open().earliestVersion, 0L)
  }

  Seq(uuid(0, first, "parquet") -> "UUID-named", classic(0) -> "classic-named").foreach {
    case (name, kind) =>
      test(s"a $kind Parquet checkpoint of the V2 spec is read with sidecars and without") {
        val withSidecars = created()
        sidecar(withSidecars, "one.parquet", "a")
        sidecar(withSidecars, "two.parquet", "b")
        write(withSidecars, name, schema(definitionColumns, v2))(
          checkpointMetadataRow(0),
          protocolRow,
          metadataRow,
          sidecarRow("one.parquet"),
          sidecarRow("two.parquet")
        )
        assertEquals(paths(withSidecars), List("a", "b"))
        val without = created()
        write(without, name, schema(definitionColumns, v2, plainAdd))(
          checkpointMetadataRow(0),
          protocolRow,
          metadataRow,
          addRow("x")
        )
        assertEquals(paths(without), List("x"))
      }
  }

  test("a checkpoint whose sidecar is missing is unreadable, and the commits are read") {
    val table = created()
    json(
      table,
      uuid(0, first, "json"),
      CheckpointMetadata(0),
      metadata,
      protocol,
      Sidecar("nowhere.parquet", 1, 1)
    )
    assertEquals(paths(table), List("from-commit"))
    table.commit(1, add("b")).delete(f"${0}%020d.json")
    val e = intercept[DeltaicThrowable](table.open().latest())
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assert(e.parameters("tried").contains("nowhere.parquet"), e.getMessage)
  }

  test("a damaged sidecar makes the checkpoint unreadable") {
    val table = created()
    sidecar(table, "one.parquet", "a")
    LocalFiles.writeString(table.log.resolve("_sidecars/two.parquet"), "PAR1")
    json(
      table,
      uuid(0, first, "json"),
      CheckpointMetadata(0),
      metadata,
      protocol,
      Sidecar("one.parquet", 1, 1),
      Sidecar("two.parquet", 1, 1)
    )
    assertEquals(paths(table), List("from-commit"))
  }

  test(
    "within a version, UUID-named checkpoints are tried newest first, then the classic one"
  ) {
    val table = created()
    def v2Json(id: String, file: String, timeMs: Long): Unit = {
      json(table, uuid(0, id, "json"), CheckpointMetadata(0), metadata, protocol, add(file))
      LocalFiles.setLastModifiedTime(
        table.log.resolve(uuid(0, id, "json")),
        FileTime.fromMillis(timeMs)
      )
      ()
    }
    write(
      table,
      classic(0),
      schema(definitionColumns, plainAdd)
    )(protocolRow, metadataRow, addRow("classic"))
    v2Json(first, "newer", 2000)
    v2Json(second, "older", 1000)
    assertEquals(paths(table), List("newer"))
    table.file(uuid(0, first, "json"), "{")
    assertEquals(paths(table), List("older"))
    table.file(uuid(0, second, "json"), "{")
    assertEquals(paths(table), List("classic"))
  }

  Seq(
    "no checkpointMetadata" -> Seq(metadata, protocol),
    "the checkpointMetadata of another version" -> Seq(CheckpointMetadata(5), metadata, protocol),
    "two metaData actions" ->
      Seq(CheckpointMetadata(0), metadata, metadata.copy(id = "other"), protocol)
  ).foreach { case (what, actions) =>
    // Protocol: uuid-named-checkpoint-1
    test(s"a checkpoint with $what is unreadable") {
      val table = created()
      json(table, uuid(0, first, "json"), actions :+ add("wrong"): _*)
      assertEquals(paths(table), List("from-commit"))
    }
  }

  // Protocol: file-types-checkpoints-2
  test("a UUID-named checkpoint of a later version than the requested one is not used") {
    val table = created().commit(1, add("b"))
    json(table, uuid(1, first, "json"), CheckpointMetadata(1), metadata, protocol, add("x"))
    assertEquals(pathsOf(table.open().at(0)), List("from-commit"))
    assertEquals(paths(table), List("x"))
  }

  test("several row groups and parts are read as one") {
    val table = created()
    val names = (0 until 5000).map(i => s"file-$i-${"x" * 50}")
    val (some, others) = names.splitAt(2500)
    write(table, "_sidecars/one.parquet", schema(plainAdd), 4096)(some.map(p => addRow(p) _): _*)
    write(table, "_sidecars/two.parquet", schema(plainAdd))(others.map(p => addRow(p) _): _*)
    json(
      table,
      uuid(0, first, "json"),
      CheckpointMetadata(0),
      metadata,
      protocol,
      Sidecar("one.parquet", 1, 1),
      Sidecar("two.parquet", 1, 1)
    )
    val snapshot = table.open().latest()
    assert(snapshot.files.blockCount > 2, snapshot.files.blockCount.toString)
    assertEquals(pathsOf(snapshot), names.toList.sorted)
    names.foreach(n => assertEquals(snapshot.files.path(snapshot.files.indexOf(n, None)), n))
  }
}
