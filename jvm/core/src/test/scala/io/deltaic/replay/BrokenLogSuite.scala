package io.deltaic.replay

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, created, metadata, protocol}
import io.deltaic.protocol._

/** Logs that break the protocol's rules. Gaps and missing beginnings are in [[DeltaLogSuite]]. */
class BrokenLogSuite extends munit.FunSuite {

  private def refused(condition: String)(body: => Any): DeltaicThrowable = {
    val e = intercept[DeltaicThrowable] { body; () }
    assertEquals(e.condition, condition, e.getMessage)
    assertEquals("<[a-zA-Z]+>".r.findFirstIn(e.getMessage), None)
    e
  }

  private def paths(snapshot: Snapshot): List[String] =
    (0 until snapshot.files.size).map(snapshot.files.path).toList.sorted

  // Protocol: change-metadata-1
  test("a first commit without a protocol or metaData is refused, naming the missing action") {
    val noProtocol = TableBuilder().commit(0, metadata, add("a"))
    val e = refused("DELTAIC_STATE_WITHOUT_PROTOCOL")(noProtocol.open().latest())
    assertEquals(e.parameters("version"), "0")
    val noMetadata = TableBuilder().commit(0, protocol, add("a")).commit(1, add("b"))
    refused("DELTAIC_STATE_WITHOUT_METADATA")(noMetadata.open().latest())
  }

  // Protocol: requirements-for-writers-delta-log-entries-2, requirements-for-writers-delta-log-entries-3
  test("two metaData or protocol actions in a commit are refused, naming the file") {
    val metadatas = created(add("a")).commit(1, metadata.copy(id = "x"), metadata.copy(id = "y"))
    val e = refused("DELTAIC_LOG_ENTRY_AMBIGUOUS")(metadatas.open().latest())
    assertEquals(
      (e.parameters("file"), e.parameters("kind"), e.parameters("count")),
      (f"${1}%020d.json", "metaData", "2")
    )
    assertEquals(paths(metadatas.open().at(0)), List("a"))
    val protocols = created().commit(1, Protocol(1, 1), Protocol(1, 2))
    assertEquals(
      refused("DELTAIC_LOG_ENTRY_AMBIGUOUS")(protocols.open().latest()).parameters("kind"),
      "protocol"
    )
  }

  test("the same metaData twice in a commit is accepted") {
    val table = created(add("a")).commit(1, metadata, metadata, protocol, protocol)
    assertEquals(table.open().latest().metadata, metadata)
  }

  // Protocol: protocol-evolution-3, protocol-evolution-4
  test("unknown actions and fields are ignored") {
    val table = created().raw(
      1,
      """{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"new":[{}]}}
        |{"fromTheFuture":{"add":{"path":"b"}}}
        |{"txn":{"appId":"x","version":1,"more":null},"alsoNew":1}
        |{}
        |""".stripMargin
    )
    val snapshot = table.open().latest()
    assertEquals(paths(snapshot), List("a"))
    assertEquals(snapshot.transactions.keySet, Set("x"))
  }

  test("an empty commit file is a commit without actions") {
    val table = created(add("a")).raw(1, "").commit(2, add("b"))
    assertEquals(paths(table.open().latest()), List("a", "b"))
    val at = table.open().at(1)
    assertEquals((at.version, paths(at)), (1L, List("a")))
    assertEquals(table.open().commitInfos().map(_._1).toList, List(2L, 1L, 0L))
  }

  test(
    "a commit that is deleted after it was listed is left out of history, and is an error for reads"
  ) {
    val table = created()
    (1 to 40).foreach(v => table.commit(v.toLong, add(s"f$v")))
    val log = table.open()
    val commits = log.commits(1, 40)
    commits.next()
    table.delete(f"${40}%020d.json")
    val e = refused("DELTAIC_COMMIT_NOT_FOUND")(commits.toList)
    assertEquals(e.parameters("version"), "40")
    val infos = log.commitInfos()
    val newest = infos.next()
    table.delete(f"${0}%020d.json")
    assertEquals((newest +: infos.toList).map(_._1), (1L to 39L).reverse.toList)
  }

  test("an empty first commit has no protocol") {
    refused("DELTAIC_STATE_WITHOUT_PROTOCOL")(TableBuilder().raw(0, "").open().latest())
  }

  test("a malformed line after valid ones is reported with its number, whatever the error") {
    val good = ActionJson.write(add("a"))
    Seq("{\"add\":{\"path\":1", "nonsense", "{\"add\":{\"path\":\"b\"}}", "[1]").foreach { bad =>
      val table = created().raw(1, s"$good\n$good\n$bad\n")
      val e = refused("DELTAIC_LOG_ENTRY_MALFORMED")(table.open().latest())
      assertEquals(e.parameters("file"), f"${1}%020d.json")
      val line = e.parameters("line").toInt
      assert(line == 3 || line == 4, s"line $line of $bad")
    }
  }
}
