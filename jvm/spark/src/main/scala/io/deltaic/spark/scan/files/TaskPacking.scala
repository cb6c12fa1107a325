package io.deltaic.spark.scan.files

import scala.collection.mutable

import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}

/**
 * Distributes splits over tasks so that all tasks finish at about the same time.
 *
 * How many tasks there are follows Spark's sizing; but Spark fills one task after the other, which
 * leaves a small remainder to the last one: ten equal files on two cores become tasks of 3, 3, 3
 * and 1, and a core reads six files where five would do. Here each split goes to the task that has
 * least to read so far, largest splits first, so that tasks differ by one split at most.
 *
 * @param openCostBytes the cost of opening a file, in bytes read
 * @param slots how many tasks run at a time
 * @param maxTasks the maximum number of tasks, if there is a limit
 */
private[scan] final case class TaskPacking(
    openCostBytes: Long,
    slots: Int,
    maxTasks: Option[Int]
) {

  /** @param sizing the number of tasks by Spark's sizing, given the splits in descending order of size */
  def pack(
      splits: Seq[PartitionedFile],
      sizing: Seq[PartitionedFile] => Int
  ): Array[FilePartition] = {
    val largestFirst = splits.sortBy(-_.length)
    val tasks = Array.fill(taskCount(splits.size, sizing(largestFirst)))(new Task)
    val leastFirst = mutable.PriorityQueue.from(tasks.indices)(
      Ordering.by((i: Int) => (tasks(i).bytes, i)).reverse
    )
    largestFirst.foreach { split =>
      val least = leastFirst.dequeue()
      tasks(least).add(split)
      leastFirst.enqueue(least)
    }
    // The longest task starts first.
    tasks.sortBy(-_.bytes).zipWithIndex.map { case (task, index) =>
      FilePartition(index, task.splits.toArray)
    }
  }

  /** Rounds up to whole rounds of tasks, if there are so few rounds that one more or less is noticeable. */
  private def taskCount(splits: Int, sizedFor: Int): Int = {
    val rounds = (sizedFor + slots - 1) / slots
    val wanted =
      if (rounds > 1 && rounds <= TaskPacking.FewRounds) rounds * slots else sizedFor
    wanted.min(maxTasks.getOrElse(Int.MaxValue)).min(splits)
  }

  private final class Task {
    val splits: mutable.ArrayBuffer[PartitionedFile] = mutable.ArrayBuffer.empty[PartitionedFile]
    var bytes: Long = 0L

    def add(split: PartitionedFile): Unit = {
      splits += split
      bytes += split.length + openCostBytes
    }
  }
}

private[scan] object TaskPacking {
  val FewRounds: Int = 8
}
