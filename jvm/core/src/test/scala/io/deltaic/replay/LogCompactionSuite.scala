package io.deltaic.replay

import scala.collection.mutable

import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv, metadata, protocol}
import io.deltaic.protocol._

/** Protocol § Log Compaction Files: a compaction gives the same state as its commits, only faster. */
class LogCompactionSuite extends ScalaCheckSuite {

  private val now = System.currentTimeMillis

  private def name(first: Long, last: Long) = f"$first%020d.$last%020d.compacted.json"

  private def compact(table: TableBuilder, first: Int, commits: Seq[Seq[Action]]): Unit = {
    val text = reconciled(commits).map(ActionJson.write).mkString("", "\n", "\n")
    table.file(name(first, first + commits.size - 1), text)
    ()
  }

  /**
   * Protocol § Action Reconciliation, implemented naively: the newest action of each key, including removed domains.
   */
  private def reconciled(commits: Seq[Seq[Action]]): Seq[Action] = {
    val newest = mutable.LinkedHashMap.empty[Any, Action]
    commits.flatten.foreach {
      case f: FileAction => newest(("file", f.path, f.dvId)) = f
      case t: SetTransaction => newest(("txn", t.appId)) = t
      case d: DomainMetadata => newest(("domain", d.domain)) = d
      case p: Protocol => newest("protocol") = p
      case m: Metadata => newest("metaData") = m
      case _ => ()
    }
    newest.values.toSeq
  }

  private def state(snapshot: Snapshot) = (
    snapshot.version,
    snapshot.protocol,
    snapshot.metadata,
    (0 until snapshot.files.size).map(snapshot.files.add).toSet,
    snapshot.tombstones.toSet,
    snapshot.transactions,
    snapshot.domains
  )

  private val file: Gen[AddFile] = for {
    n <- Gen.choose(0, 12)
    vector <- Gen.oneOf(None, Some(dv("a")), Some(dv("b")))
    size <- Gen.posNum[Long]
  } yield add(s"f$n", size, vector)

  private val action: Gen[Action] = Gen.frequency(
    6 -> file,
    4 -> file.map(_.remove(now)),
    1 -> Gen.zip(Gen.oneOf("a", "b"), Gen.posNum[Long]).map(t => SetTransaction(t._1, t._2)),
    1 -> Gen
      .zip(Gen.oneOf("d", "e"), Gen.alphaStr, Gen.oneOf(true, false))
      .map(d => DomainMetadata(d._1, d._2, d._3))
  )

  /** At most one action per key, as the protocol requires of a commit. */
  private val commit: Gen[Seq[Action]] = for {
    actions <- Gen.listOf(action)
    id <- Gen.option(Gen.alphaStr)
  } yield reconciled(Seq(actions)) ++ id.map(i => metadata.copy(id = s"id-$i"))

  private val log: Gen[(Seq[Seq[Action]], Seq[(Int, Int)])] = for {
    commits <- Gen.listOfN(8, commit)
    ranges <- Gen.listOf(Gen.zip(Gen.choose(0, 8), Gen.choose(0, 8)))
  } yield (Seq(protocol, metadata) +: commits, ranges.filter(r => r._1 < r._2))

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(60)

  // Protocol: reader-domain-metadata-3
  property("every version has the same state with and without compactions of any ranges") {
    forAll(log) { case (commits, ranges) =>
      val plain = TableBuilder()
      val compacted = TableBuilder()
      commits.zipWithIndex.foreach { case (actions, version) =>
        plain.commit(version, actions: _*)
        compacted.commit(version, actions: _*)
      }
      ranges.foreach { case (a, b) => compact(compacted, a, commits.slice(a, b + 1)) }
      commits.indices.foreach { version =>
        assertEquals(
          state(compacted.open().at(version)),
          state(plain.open().at(version)),
          s"version $version, compactions $ranges"
        )
      }
    }
  }

  private def pathsOf(snapshot: Snapshot): List[String] =
    (0 until snapshot.files.size).map(snapshot.files.path).toList.sorted

  test("the commits that a compaction replaces are not read") {
    val commits = Seq(Seq(protocol, metadata), Seq(add("a")), Seq(add("b"), add("a").remove(now)))
    val table = TableBuilder()
    commits.zipWithIndex.foreach { case (actions, version) => table.commit(version, actions: _*) }
    compact(table, 1, commits.drop(1))
    table.raw(1, "not read").raw(2, "not read either").commit(3, add("c"))
    assertEquals(pathsOf(table.open().latest()), List("b", "c"))
    intercept[DeltaicThrowable](table.open().at(1))
  }

  test("an unreadable compaction is ignored") {
    val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b"))
    table.file(name(1, 2), """{"add":{"path":"x","si""")
    assertEquals(pathsOf(table.open().latest()), List("a", "b"))
  }

  private val damaged: Seq[(String, Seq[Action])] = Seq(
    "an add before the remove of the file" -> Seq(add("a").remove(now), add("a"), add("b")),
    "an add after the remove of the file" -> Seq(add("a"), add("a").remove(now), add("b")),
    "an add twice" -> Seq(add("b"), add("b"), add("c")),
    "a file under two spellings of its path" -> Seq(add("b"), add("%62")),
    "two deletion vectors of a file" -> Seq(
      add("b", dv = Some(dv("x"))),
      add("b", dv = Some(dv("y")))
    ),
    "a file with a deletion vector and without" -> Seq(add("b"), add("b", dv = Some(dv("x")))),
    "two transactions of an application" -> Seq(SetTransaction("q", 1), SetTransaction("q", 2)),
    "two values of a domain" ->
      Seq(DomainMetadata("d", "1", removed = false), DomainMetadata("d", "", removed = true)),
    "the same protocol twice" -> Seq(protocol, protocol),
    "actions of a checkpoint" -> Seq(add("x"), CheckpointMetadata(2)),
    "a file of a later version" -> Seq(add("x").copy(defaultRowCommitVersion = Some(3L)))
  )

  damaged.foreach { case (what, actions) =>
    test(s"a compaction with $what is ignored") {
      val table =
        TableBuilder.created(add("a")).commit(1, add("a").remove(now)).commit(2, add("b"))
      table.file(name(1, 2), actions.map(ActionJson.write).mkString("", "\n", "\n"))
      table.commit(3, add("c"))
      assertEquals(pathsOf(table.open().latest()), List("b", "c"))
    }
  }

  test("a compaction from version 0 on without protocol or metaData is ignored") {
    Seq(Seq(protocol), Seq(metadata), Nil).foreach { present =>
      val table = TableBuilder.created(add("a")).commit(1, add("b"))
      val actions = present ++ Seq(add("x"))
      table.file(name(0, 1), actions.map(ActionJson.write).mkString("", "\n", "\n"))
      assertEquals(pathsOf(table.open().latest()), List("a", "b"))
    }
  }

  test("a damaged compaction does not replace a missing commit") {
    val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b")).commit(3)
    table.file(name(1, 2), Seq(add("a"), add("a"), add("b")).map(ActionJson.write).mkString("\n"))
    table.delete(f"${1}%020d.json")
    val e = intercept[DeltaicException](table.open().latest())
    assertEquals(e.condition, "DELTAIC_LOG_GAP")
    assertEquals(e.parameters("missing"), "1")
  }

  test("a compaction does not hide a missing commit") {
    val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b")).commit(3)
    compact(table, 1, Seq(Seq(add("a")), Seq(add("b"))))
    table.delete(f"${2}%020d.json")
    val e = intercept[DeltaicThrowable](table.open().latest())
    assertEquals(e.condition, "DELTAIC_LOG_GAP")
  }

  test("a compaction that contradicts a checksum file is ignored") {
    val table = TableBuilder.created(add("a")).commit(1, add("a").remove(now)).commit(2, add("b"))
    table.file(name(1, 2), ActionJson.write(add("b")) + "\n")
    assertEquals(pathsOf(table.open().latest()), List("a", "b"), "used without a checksum")
    table.file(f"${2}%020d.crc", """{"numFiles":1,"tableSizeBytes":1}""")
    assertEquals(pathsOf(table.open().latest()), List("b"))
  }
}
