package io.deltaic.spark.scan.files

import scala.util.Random

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.PartitionedFile

class TaskPackingSuite extends munit.FunSuite {

  private val openCostBytes = 4L

  private def splits(lengths: Long*): Seq[PartitionedFile] =
    lengths.zipWithIndex.map { case (length, i) =>
      PartitionedFile(InternalRow.empty, SparkPath.fromPathString(s"/f$i"), 0, length)
    }

  /** The lengths of the splits in each task. */
  private def packed(
      files: Seq[PartitionedFile],
      sizedFor: Int,
      slots: Int = 2,
      maxTasks: Option[Int] = None
  ): Seq[Seq[Long]] =
    TaskPacking(openCostBytes, slots, maxTasks)
      .pack(files, _ => sizedFor)
      .toSeq
      .map(_.files.toSeq.map(_.length))

  test("ten equal files in four tasks leave two cores five files each") {
    assertEquals(packed(splits(Seq.fill(10)(30L): _*), 4).map(_.size), Seq(3, 3, 2, 2))
  }

  test("tasks are rounded up to the number that run concurrently") {
    assertEquals(packed(splits(Seq.fill(12)(30L): _*), 3).map(_.size), Seq(3, 3, 3, 3))
  }

  test("a single round keeps the number of tasks, so that small scans stay small") {
    assertEquals(packed(splits(Seq.fill(12)(30L): _*), 1).size, 1)
    assertEquals(packed(splits(Seq.fill(12)(30L): _*), 3, slots = 8).size, 3)
  }

  test("with many rounds the number of tasks is unchanged, because the last round hardly matters") {
    assertEquals(packed(splits(Seq.fill(100)(30L): _*), 33).size, 33)
  }

  test("a limit on tasks is respected") {
    assertEquals(packed(splits(Seq.fill(12)(30L): _*), 3, maxTasks = Some(3)).size, 3)
  }

  test("there are never more tasks than splits, and none for no split") {
    assertEquals(packed(splits(10L), 1, slots = 8), Seq(Seq(10L)))
    assertEquals(packed(splits(10L, 20L, 30L), 3), Seq(Seq(30L), Seq(20L), Seq(10L)))
    assertEquals(packed(Nil, 0), Nil)
  }

  test("a large split has a task of its own, which starts first") {
    assertEquals(packed(splits(1L, 2L, 3L, 100L), 2), Seq(Seq(100L), Seq(3L, 2L, 1L)))
  }

  test("every split is in one task, and tasks differ by the largest split at most") {
    val random = new Random(20_261_121)
    (1 to 200).foreach { _ =>
      val files = splits(Seq.fill(1 + random.nextInt(60))(random.nextLong(1000L)): _*)
      val slots = 1 + random.nextInt(8)
      val tasks = TaskPacking(openCostBytes, slots, None).pack(files, _ => 1 + random.nextInt(40))
      assertEquals(
        tasks.flatMap(_.files).map(_.urlEncodedPath).sorted.toSeq,
        files.map(_.urlEncodedPath).sorted
      )
      val loads = tasks.map(_.files.map(_.length + openCostBytes).sum)
      assert(loads.max - loads.min <= files.map(_.length).max + openCostBytes)
      assertEquals(tasks.map(_.index).toSeq, tasks.indices.toSeq)
    }
  }
}
