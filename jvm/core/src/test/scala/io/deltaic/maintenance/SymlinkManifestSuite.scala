package io.deltaic.maintenance

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv, protocol}
import io.deltaic.protocol._

/** Symlink manifests, for engines that do not read the log. */
class SymlinkManifestSuite extends munit.FunSuite {
  import MaintenanceFixture._

  private val partitioned = TableBuilder.metadata.copy(partitionColumns = Seq("p"))

  private def at(path: String, value: String): AddFile =
    add(path).copy(partitionValues = Map("p" -> value))

  private def removed(path: String, value: String): RemoveFile =
    remove(path).copy(partitionValues = Map("p" -> value))

  private def list(table: TableBuilder, version: Long): Unit = {
    run(table, version, MaintenanceTask.SymlinkManifest)
    ()
  }

  private def root(table: TableBuilder): LocalPath =
    table.directory.resolve("_symlink_format_manifest")

  /** The names of the listed files, by the folder of the manifest. */
  private def lists(table: TableBuilder): Map[String, Set[String]] = {
    val below = Files.walk(root(table))
    try
      below.iterator.asScala
        .filter(_.getFileName.toString == "manifest")
        .map { file =>
          val lines = Files.readAllLines(file).asScala.toSet
          root(table).relativize(file.getParent).toString ->
            lines.map(_.stripPrefix(s"${table.path}").stripPrefix("/"))
        }
        .toMap
    finally below.close()
  }

  test("a table without partitions has one manifest, of absolute paths, even if it has no file") {
    val table = TableBuilder.created()
    list(table, 0)
    assertEquals(lists(table), Map("" -> Set.empty[String]))
    table.commit(1, add("a%20b.parquet"), add("/elsewhere/c.parquet"))
    list(table, 1)
    assertEquals(lists(table), Map("" -> Set("a b.parquet", "file:/elsewhere/c.parquet")))
  }

  test("a commit updates the manifests of its own partitions, and deletes an empty one") {
    val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"), at("b", null))
    list(table, 0)
    assertEquals(lists(table), Map("1" -> Set("a"), "-" -> Set("b")))
    val untouched = Files.getLastModifiedTime(root(table).resolve("-/manifest"))
    table.commit(1, removed("a", "1"), at("c", "2"))
    list(table, 1)
    assertEquals(lists(table), Map("2" -> Set("c"), "-" -> Set("b")))
    assertEquals(Files.getLastModifiedTime(root(table).resolve("-/manifest")), untouched)
  }

  test("manifests are of the newest version, also after the late maintenance of an older commit") {
    val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"))
    list(table, 0)
    table.commit(1, at("b", "1")).commit(2, removed("a", "1"), removed("b", "1"), at("c", "3"))
    list(table, 2)
    list(table, 1)
    assertEquals(lists(table), Map("3" -> Set("c")))
  }

  test("all manifests are rewritten if a commit changes metaData or lacks partition values") {
    val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"), at("b", "2"))
    list(table, 0)
    table.commit(1, removed("a", "1")).commit(2, remove("b").copy(partitionValues = Map.empty))
    list(table, 2)
    assertEquals(lists(table), Map.empty[String, Set[String]])
    table.commit(3, at("c", "4")).commit(4, partitioned.copy(name = Some("t")))
    list(table, 4)
    assertEquals(lists(table), Map("4" -> Set("c")))
  }

  test("a failed manifest is written by the next commit, whichever partition that changes") {
    val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"))
    list(table, 0)
    table.commit(1, at("b", "2"))
    Files.createDirectories(root(table).resolve("2/manifest/in-the-way"))
    list(table, 1)
    Files.delete(root(table).resolve("2/manifest/in-the-way"))
    Files.delete(root(table).resolve("2/manifest"))
    table.commit(2, at("c", "3"))
    list(table, 2)
    assertEquals(lists(table), Map("1" -> Set("a"), "2" -> Set("b"), "3" -> Set("c")))
  }

  test("manifests that a killed process did not write are written by the next commit") {
    val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"), at("b", "2"))
    list(table, 0)
    table.commit(1, removed("a", "1")).commit(2, at("c", "2")).commit(3, at("d", "3"))
    list(table, 3)
    assertEquals(lists(table), Map("2" -> Set("b", "c"), "3" -> Set("d")))
    val untouched = Files.getLastModifiedTime(root(table).resolve("2/manifest"))
    table.commit(4, at("e", "3"))
    list(table, 4)
    assertEquals(lists(table), Map("2" -> Set("b", "c"), "3" -> Set("d", "e")))
    assertEquals(Files.getLastModifiedTime(root(table).resolve("2/manifest")), untouched)
  }

  test("without a version marker, or with that of another table, all manifests are written") {
    for (marker <- Seq(None, Some("9"), Some("?"))) {
      val table = TableBuilder().commit(0, protocol, partitioned, at("a", "1"))
      list(table, 0)
      table.commit(1, removed("a", "1"), at("b", "2")).commit(2, at("c", "3"))
      val file = table.directory.resolve("_delta_log/_last_symlink_manifest")
      assertEquals(Files.readString(file), "0")
      marker.fold(Files.delete(file)) { text => Files.writeString(file, text); () }
      list(table, 2)
      assertEquals(lists(table), Map("2" -> Set("b"), "3" -> Set("c")))
      assertEquals(Files.readString(file), "2")
    }
  }

  test("no manifest is written if a file has a deletion vector: readers would see deleted rows") {
    val table = TableBuilder.created(add("a", 1, Some(dv("x"))))
    val maintenance = run(table, 0, MaintenanceTask.SymlinkManifest)
    assertEquals(maintenance.failed, Set("symlinkManifest"))
    assertEquals(Files.exists(root(table)), false)
  }
}
