package io.deltaic.replay

import scala.collection.mutable

import munit.ScalaCheckSuite
import org.apache.hadoop.fs.Path
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.TableBuilder.{add, dv}
import io.deltaic.log.CommitFile
import io.deltaic.protocol._

/** Compares replay with a map of complete actions, the simplest implementation of Protocol § Action Reconciliation. */
class FileTableSuite extends ScalaCheckSuite {

  private val table = new Path("file:/t")

  private val file: Gen[AddFile] = for {
    n <- Gen.choose(0, 30)
    vector <- Gen.oneOf(None, Some(dv("a")), Some(dv("b")))
    partition <- Gen.oneOf(Map.empty[String, String], Map("p" -> "1"), Map("p" -> null, "q" -> "x"))
    tags <- Gen.oneOf(Map.empty[String, String], Map("t" -> "u"))
    stats <- Gen.option(Gen.alphaStr)
    number <- Gen.option(Gen.posNum[Long])
    provider <- Gen.option(Gen.const("liquid"))
    size <- Gen.posNum[Long]
  } yield AddFile(
    s"file%20$n",
    partition,
    size,
    n.toLong,
    dataChange = true,
    stats,
    tags,
    vector,
    number,
    number.map(_ + 1),
    provider
  )

  private val action: Gen[Action] =
    Gen.frequency(3 -> file, 2 -> file.map(_.remove(1)))

  private val commits = Gen.listOf(Gen.listOf(action))

  // Protocol: action-reconciliation-1, add-file-and-remove-file-1, dv-action-reconciliation-changes-1, dv-action-reconciliation-changes-2, dv-action-reconciliation-changes-3, file-types-delta-log-entries-1
  property("a table after any commits, in batches of any size, equals a map of actions") {
    forAll(commits, Gen.choose(1, 5)) { (all, batch) =>
      val adds = mutable.LinkedHashMap.empty[(String, Option[String]), AddFile]
      val removes = mutable.LinkedHashMap.empty[(String, Option[String]), RemoveFile]
      var state = TableState.empty(table)
      all.grouped(batch).foreach { some =>
        some.flatten.foreach {
          case a: AddFile =>
            adds((a.path, a.dvId)) = a
            removes.remove((a.path, a.dvId))
          case r: RemoveFile =>
            removes((r.path, r.dvId)) = r
            adds.remove((r.path, r.dvId))
          case _ => ()
        }
        state = state.advanced(some.iterator.map(new CommitFile(0, 0, _)))
        same(state, adds.values.toSet, removes.values.toSet)
      }
    }
  }

  private def same(state: TableState, adds: Set[AddFile], removes: Set[RemoveFile]): Unit = {
    val files = state.files
    val found = (0 until files.size).map(files.add)
    assertEquals(found.toSet, adds.map(_.copy(dataChange = false)))
    assertEquals(found.size, adds.size)
    found.zipWithIndex.foreach { case (a, i) =>
      assertEquals(files.indexOf(a.path, a.dvId), i)
      assertEquals(files.indexOf(s"file:///t/${a.path}", a.dvId), i)
      assertEquals(files.path(i), a.path)
      assertEquals(files.sizeBytes(i), a.sizeBytes)
      assertEquals(files.modificationTimeMs(i), a.modificationTimeMs)
      assertEquals(Option(files.stats(i)), a.stats)
      assertEquals(Option(files.deletionVector(i)), a.deletionVector)
      Seq("p", "q", "r").foreach { c =>
        assertEquals(files.partitionValue(i, c), a.partitionValues.getOrElse(c, null))
      }
    }
    assertEquals(files.indexOf("nowhere", None), -1)
    assertEquals(files.totalSizeBytes, adds.toSeq.map(_.sizeBytes).sum)
    assertEquals(files.withDeletionVectors, adds.count(_.deletionVector.isDefined))
    assertEquals(
      state.tombstones.byKey.values.toSet,
      removes.map(_.copy(stats = None, tags = Map.empty))
    )
  }

  test("the number of blocks stays small however many commits add a file each") {
    var state = TableState.empty(table)
    (0 until 2000).foreach { n =>
      state = state.advanced(Iterator(new CommitFile(n.toLong, 0, Seq(add(s"f$n")))))
    }
    assertEquals(state.files.size, 2000)
    assert(state.files.blockCount <= 12, state.files.blockCount.toString)
    (0 until 2000).foreach(n =>
      assertEquals(state.files.path(state.files.indexOf(s"f$n", None)), s"f$n")
    )
  }

  test("files can be added to a table again after all its files were removed") {
    Seq(3, 25, 1100, 5000).foreach { many =>
      val files = (0 until many).map(n => add(s"f$n"))
      def commit(version: Long, actions: Seq[Action]): Iterator[CommitFile] =
        Iterator(new CommitFile(version, 0, actions))
      val (most, rest) = files.splitAt(many * 3 / 4)
      var state = TableState.empty(table).advanced(commit(0, most)).advanced(commit(1, rest))
      state = state.advanced(commit(2, files.map(_.remove(1))))
      assertEquals(state.files.size, 0)
      state = state.advanced(commit(3, Seq(add("again"))))
      assertEquals((0 until state.files.size).map(state.files.path), Seq("again"))
      assertEquals(state.files.indexOf("again", None), 0)
    }
  }

  test("a table that is rewritten repeatedly does not retain dead rows") {
    var state = TableState.empty(table)
    (0 until 200).foreach { n =>
      val removed = (0 until 50).map(i => add(s"f${n - 1}-$i").remove(1))
      val added = (0 until 50).map(i => add(s"f$n-$i"))
      state = state.advanced(Iterator(new CommitFile(n.toLong, 0, removed ++ added)))
    }
    assertEquals(state.files.size, 50)
    assert(state.files.rowsInMemory <= 2 * 50 + 1024 + 50, state.files.rowsInMemory.toString)
  }
}
