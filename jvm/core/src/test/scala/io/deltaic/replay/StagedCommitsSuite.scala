package io.deltaic.replay

import java.nio.file.Files

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol._

/** Tables with a commit coordinator, whose newest commits may be unpublished. */
class StagedCommitsSuite extends munit.FunSuite {

  private val coordinated = Map("delta.coordinatedCommits.commitCoordinator-preview" -> "dynamodb")
  private val feature =
    Protocol(1, 7, None, Some(Set("coordinatedCommits-preview", "inCommitTimestamp")))

  private def table(protocol: Protocol, properties: Map[String, String]): TableBuilder = {
    val metadata = TableBuilder.metadata.copy(configuration = properties)
    val made = TableBuilder().commit(0, protocol, metadata, add("f0")).commit(1, add("f1"))
    Seq("_staged_commits", "_commits").foreach(f => Files.createDirectory(made.log.resolve(f)))
    made
  }

  private def stage(table: TableBuilder, version: Long, folder: String): Unit = {
    table.file(f"$folder/$version%020d.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json", "{}")
    ()
  }

  private def newest(table: TableBuilder): Long = table.open().latest().version

  Seq(
    "property" -> table(TableBuilder.protocol, coordinated),
    "feature" -> table(feature, Map.empty)
  ).zip(Seq("_staged_commits", "_commits")).foreach { case ((how, made), folder) =>
    test(s"a table is read if every commit is published, and refused otherwise ($how)") {
      assertEquals(newest(made), 1L)
      Seq(0L, 1L).foreach(stage(made, _, folder))
      assertEquals(newest(made), 1L)
      val log = made.open()
      assertEquals(log.latest().version, 1L)

      stage(made, 2, folder)
      Seq(log, made.open()).foreach { reader =>
        val e = intercept[DeltaicThrowable](reader.latest())
        assertEquals(e.condition, "DELTAIC_COMMITS_UNPUBLISHED")
        assertEquals(e.parameters("version"), "1")
        assert(e.parameters("files").startsWith(f"$folder/${2}%020d."), e.parameters)
      }
      assertEquals(log.at(1).version, 1L) // what is published stays as it is

      made.commit(2, add("f2"))
      assertEquals(log.latest().version, 2L)
    }
  }

  test("folders of staged commits are ignored in a table without a coordinator") {
    val made = table(TableBuilder.protocol, Map.empty)
    stage(made, 2, "_staged_commits")
    assertEquals(newest(made), 1L)
  }
}
