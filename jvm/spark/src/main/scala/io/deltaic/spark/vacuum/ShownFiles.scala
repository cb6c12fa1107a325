package io.deltaic.spark.vacuum

import java.io.{ObjectInputStream, ObjectOutputStream}
import java.lang.ref.Cleaner

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.BaseGenericInternalRow
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.{Partition, SparkContext, TaskContext}

import io.deltaic.log.DaemonThread

/**
 * The result of VACUUM with DRY RUN: the absolute paths of what it would delete. They are in a local temporary file
 * once they are many, which is deleted when no DataFrame refers to them any more.
 */
private[spark] final class ShownFiles private[vacuum] (unused: UnusedFiles, paths: TablePaths) {
  import UnusedFiles.ChunkSize

  unused.deleteOnExit()
  ShownFiles.cleaner.register(this, ShownFiles.closing(unused))

  private val directories = unused.directories.toIndexedSeq
  private val numFiles = math.toIntExact(unused.numFiles)
  private val ofDirectories = directories.grouped(ChunkSize).toIndexedSeq

  @volatile private var lastRead: (Int, IndexedSeq[String]) = (-1, IndexedSeq.empty)

  def size: Int = math.addExact(numFiles, directories.size)

  /** The files, and then the directories that are empty without them. */
  def all: Iterator[String] = (0 until numChunks).iterator.flatMap(chunk)

  /** Rows that read their path when it is asked for. */
  def rows: Array[InternalRow] = Array.tabulate(size)(new ShownFiles.Row(this, _))

  /** As rows of a query. Each task gets its own paths. */
  def rdd(context: SparkContext): RDD[String] = new ShownFiles.Paths(context, this)

  private def numChunks: Int = unused.numChunks + ofDirectories.size

  private def chunk(n: Int): IndexedSeq[String] = {
    val relative =
      if (n < unused.numChunks) unused.chunk(n) else ofDirectories(n - unused.numChunks)
    relative.map(paths.absolute(_).toString)
  }

  /** Rows are mostly read in order. */
  private def path(row: Int): String =
    if (row >= numFiles) paths.absolute(directories(row - numFiles)).toString
    else {
      val n = row / ChunkSize
      val (read, found) = lastRead
      val all = if (read == n) found else chunk(n)
      lastRead = (n, all)
      all(row % ChunkSize)
    }
}

private[spark] object ShownFiles {
  private val cleaner = Cleaner.create(DaemonThread(_, "deltaic-shown-files"))

  /** It must not refer to the object that it is registered for. */
  private def closing(unused: UnusedFiles): Runnable = () => unused.close()

  /** What the rows of a command are read from, if they are too many to be treated as those of other commands. */
  def of(rows: Seq[InternalRow]): Option[ShownFiles] =
    rows.headOption.collect { case row: Row if rows.size > UnusedFiles.ChunkSize => row.files }

  private final class Row(val files: ShownFiles, n: Int) extends BaseGenericInternalRow {
    override def numFields: Int = 1
    override protected def genericGet(ordinal: Int): Any = UTF8String.fromString(files.path(n))
    override def setNullAt(i: Int): Unit = throw new UnsupportedOperationException
    override def update(i: Int, value: Any): Unit = throw new UnsupportedOperationException
  }

  private final class Paths(context: SparkContext, @transient files: ShownFiles)
      extends RDD[String](context, Nil) {

    override protected def getPartitions: Array[Partition] =
      Array.tabulate(files.numChunks)(new Chunk(_, files))

    override def compute(split: Partition, task: TaskContext): Iterator[String] =
      split.asInstanceOf[Chunk].paths.iterator
  }

  /** It reads its paths when it is sent: those of other tasks are not in memory. */
  private final class Chunk(override val index: Int, @transient files: ShownFiles)
      extends Partition {
    @transient private var received: Array[String] = null

    def paths: Array[String] = if (files == null) received else files.chunk(index).toArray

    private def writeObject(out: ObjectOutputStream): Unit = {
      out.defaultWriteObject()
      out.writeObject(paths)
    }

    private def readObject(in: ObjectInputStream): Unit = {
      in.defaultReadObject()
      received = in.readObject().asInstanceOf[Array[String]]
    }
  }
}
