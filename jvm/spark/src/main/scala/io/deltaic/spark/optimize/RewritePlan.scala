package io.deltaic.spark.optimize

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.execution.datasources.PartitionedFile

import io.deltaic.protocol.AddFile
import io.deltaic.spark.commit.lineage.Lineage
import io.deltaic.spark.schema.PartitionKey
import io.deltaic.spark.write.files.CopyWriter

/**
 * Files of one partition that are rewritten together, in the order in which their rows are written.
 *
 * @param partitionValues the values of the partition columns, as the log spells them
 */
private[optimize] final case class FileGroup(partitionValues: Seq[String], files: Seq[AddFile]) {
  def bytes: Long = files.iterator.map(_.sizeBytes).sum

  /** The group in parts of at least this size, in the same order. A small rest is part of the last. */
  def split(minBytes: Long): Seq[FileGroup] = {
    val parts = FileGroup.chunks(files, minBytes)((file: AddFile) => file.sizeBytes)
    val rest = parts.last
    val isSmall = parts.size > 1 && rest.iterator.map(_.sizeBytes).sum < minBytes / 2
    val joined = if (isSmall) parts.dropRight(2) :+ (parts(parts.size - 2) ++ rest) else parts
    joined.map(FileGroup(partitionValues, _))
  }
}

private[optimize] object FileGroup {

  /** A group for each of these partitions. Rows that were written at about the same time stay together. */
  def ofPartitions(
      partitions: PartitionKey,
      files: Iterator[Iterable[AddFile]]
  ): IndexedSeq[FileGroup] =
    files
      .map(_.toIndexedSeq.sortBy(file => (file.modificationTimeMs, file.path)))
      .toIndexedSeq
      .sortBy(_.head.path)
      .map(ofPartition => FileGroup(partitions.inLog(ofPartition.head), ofPartition))

  /**
   * The groups that are committed together. A group is split only if each part makes a whole new file.
   *
   * @param areOrdered whether the rows of a group are ordered together, so that none is split
   */
  def batches(
      groups: Seq[FileGroup],
      settings: OptimizeSettings,
      areOrdered: Boolean
  ): Seq[IndexedSeq[FileGroup]] =
    settings.batchBytes match {
      case _ if groups.isEmpty => Nil
      case None => Seq(groups.toIndexedSeq)
      case Some(bytes) =>
        val split =
          if (areOrdered) groups else groups.flatMap(_.split(bytes.max(settings.maxFileBytes)))
        chunks(split, bytes)(_.bytes).map(_.toIndexedSeq)
    }

  /** Consecutive items, each chunk of at least this size, but for the last. */
  private def chunks[A](items: Seq[A], minBytes: Long)(bytesOf: A => Long): Seq[Seq[A]] = {
    val found = ArrayBuffer.empty[ArrayBuffer[A]]
    var bytes = minBytes
    items.foreach { item =>
      if (bytes >= minBytes) {
        found += ArrayBuffer.empty
        bytes = 0
      }
      found.last += item
      bytes += bytesOf(item)
    }
    found.toSeq.map(_.toSeq)
  }
}

/**
 * A split of an input file.
 *
 * @param file the position of the file in its group
 */
private[optimize] final case class InputSplit(file: Int, split: PartitionedFile)

/**
 * Consecutive rows of a group, which one task writes to one file.
 *
 * @param group the position of the group in the plan
 */
private[optimize] final case class RewritePart(
    group: Int,
    partitionValues: Seq[String],
    splits: Seq[InputSplit]
)

private[optimize] object RewritePart {

  /** The share of the size of a file that one part has at most: files of whole parts are that close to it. */
  private val PartsOfFile = 8

  /** The same of ordered rows: each part costs a block of each task that reads them, and a dictionary of each column. */
  private val OrderedPartsOfFile = 5

  /** Two tasks for each slot, so that the last ones end at about the same time. */
  private val TasksOfSlot = 2

  /** A task that only reads rows, and shuffles them, is repeated as a whole if it fails. */
  private val MaxInputBytes = 256L << 20

  /**
   * The size of parts with which all slots have something to do.
   *
   * @param bytes of all groups
   */
  def sizeOf(bytes: Long, slots: Int, settings: OptimizeSettings, areOrdered: Boolean): Long =
    ofSlots(bytes, slots, settings)
      .min(settings.maxFileBytes / (if (areOrdered) OrderedPartsOfFile else PartsOfFile)).max(1L)

  /** How much a task reads of rows that are ordered: few tasks make few blocks of the shuffle. */
  def inputSizeOf(bytes: Long, slots: Int, settings: OptimizeSettings): Long =
    ofSlots(bytes, slots, settings).min(MaxInputBytes)

  private def ofSlots(bytes: Long, slots: Int, settings: OptimizeSettings): Long =
    (bytes / (TasksOfSlot * slots.max(1))).max(settings.minTaskBytes)

  /** The number of parts of about this size. A remainder of less than half a part is spread over the others. */
  def count(bytes: Long, partBytes: Long): Long = ((bytes + partBytes / 2) / partBytes).max(1L)

  /**
   * Cuts a group into parts of about the same size.
   *
   * @param splits of all files of the group, in their order
   */
  def of(
      group: Int,
      partitionValues: Seq[String],
      splits: Seq[InputSplit],
      partBytes: Long
  ): Seq[RewritePart] = {
    val bytes = splits.iterator.map(_.split.length).sum
    val count = RewritePart.count(bytes, partBytes)
    val parts = ArrayBuffer.empty[RewritePart]
    val current = ArrayBuffer.empty[InputSplit]
    var read = 0L
    splits.foreach { split =>
      current += split
      read += split.split.length
      if (read * count >= bytes * (parts.size + 1)) {
        parts += RewritePart(group, partitionValues, current.toVector)
        current.clear()
      }
    }
    if (current.nonEmpty) parts += RewritePart(group, partitionValues, current.toVector)
    parts.toSeq
  }
}

/**
 * A file that a task has written.
 *
 * @param add none if no row of the part is live
 * @param decodedBytes the size of the file before compression
 * @param rowsOfSplits the number of live rows in each split of the part; of all splits together if the rows are ordered
 */
private[optimize] final case class WrittenPart(
    add: Option[AddFile],
    decodedBytes: Long,
    rowsOfSplits: Seq[Long]
)

private[optimize] object WrittenPart {

  /**
   * Writes the file of a part in a task. If that fails, or the task is killed, the file is deleted.
   *
   * @param write the number of the rows that it has written, as `rowsOfSplits`
   */
  def by(writer: CopyWriter)(write: => Seq[Long]): WrittenPart = {
    WriteInternals.onFailedTask(() => writer.abort())
    try {
      val rows = write
      val (add, decodedBytes) = writer.close()
      WriteInternals.addOutputMetrics(add.fold(0L)(_.sizeBytes), rows.sum)
      WrittenPart(add, decodedBytes, rows)
    } catch {
      case e: Throwable =>
        writer.abort()
        throw e
    }
  }
}

/**
 * A file of consecutive parts of a group.
 *
 * @param inputs the rows that it holds, in their order; none if the rows have been given another order
 */
private[optimize] final case class OutputFile(
    group: Int,
    partitionValues: Seq[String],
    parts: Seq[AddFile],
    inputs: Seq[InputRows]
) {

  /** The input files whose rows it holds. */
  def filesIn(groups: IndexedSeq[FileGroup]): Seq[AddFile] = {
    val files = groups(group).files
    inputs.map(input => files(input.file))
  }

  /** @param firstInput the position of the first file of the group among the inputs of the commit */
  def lineage(firstInput: Int): Option[Lineage] = inputs.headOption.map { first =>
    val counts = inputs.map(rows => rows.file -> rows.count).toMap
    // Inputs without live rows are between them.
    Lineage(
      firstInput + first.file,
      first.from,
      (first.file to inputs.last.file).map(counts.getOrElse(_, 0L))
    )
  }
}

/**
 * Consecutive live rows of an input file.
 *
 * @param file the position of the file in its group
 * @param from the number of live rows of the file before them
 */
private[optimize] final case class InputRows(file: Int, from: Long, count: Long)

private[optimize] object OutputFile {

  /**
   * Packs the parts of one group into files, by the sizes that they turned out to have.
   *
   * @param areOrdered whether files may be larger than the maximum by half a part. If not, where parts are a little larger
   *   than planned, as ordered ones often are, files would be smaller by a whole part.
   */
  def pack(
      parts: Seq[(RewritePart, WrittenPart)],
      settings: OptimizeSettings,
      areOrdered: Boolean = false
  ): Seq[OutputFile] = {
    val rowsBefore = scala.collection.mutable.Map.empty[Int, Long].withDefaultValue(0L)
    val files = ArrayBuffer.empty[ArrayBuffer[(RewritePart, WrittenPart, Seq[InputRows])]]
    var (bytes, decodedBytes) = (0L, 0L)
    parts.foreach { case (part, written) =>
      val inputs = part.splits.zip(written.rowsOfSplits).map { case (split, count) =>
        val from = rowsBefore(split.file)
        rowsBefore(split.file) = from + count
        InputRows(split.file, from, count)
      }
      written.add.foreach { add =>
        bytes += add.sizeBytes
        decodedBytes += written.decodedBytes
        val excess = if (areOrdered) add.sizeBytes / 2 else 0L
        val isFull = bytes - excess > settings.maxFileBytes ||
          decodedBytes > settings.maxDecodedFileBytes
        if (files.isEmpty || isFull) {
          files += ArrayBuffer.empty
          bytes = add.sizeBytes
          decodedBytes = written.decodedBytes
        }
        files.last += ((part, written, inputs))
      }
    }
    files.toSeq.map { file =>
      val first = file.head._1
      OutputFile(
        first.group,
        first.partitionValues,
        file.toSeq.flatMap(_._2.add),
        joined(file.toSeq.flatMap(_._3))
      )
    }
  }

  /** The same rows, with one entry for each file. */
  private def joined(inputs: Seq[InputRows]): Seq[InputRows] =
    inputs.filter(_.count > 0).foldLeft(Vector.empty[InputRows]) { (before, next) =>
      before.lastOption match {
        case Some(last) if last.file == next.file =>
          before.init :+ last.copy(count = last.count + next.count)
        case _ => before :+ next
      }
    }
}
