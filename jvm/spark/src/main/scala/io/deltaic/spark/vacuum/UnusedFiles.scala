package io.deltaic.spark.vacuum

import java.io.{BufferedInputStream, DataInputStream, DataOutputStream}

import scala.collection.mutable

import io.deltaic.log.SpillableBuffer

/**
 * The files and directories that VACUUM deletes. Paths are relative to the table. Those of files spill to a local
 * temporary file, so that there may be millions of them. Thread safe while files are added.
 */
private[vacuum] final class UnusedFiles(cutoffMs: Long) extends AutoCloseable {
  import UnusedFiles.ChunkSize

  private val buffer = new SpillableBuffer
  private val out = new DataOutputStream(buffer)
  private val tree = new UnusedDirectories(cutoffMs)

  /** Where each chunk begins in the buffer. */
  private val chunks = mutable.ArrayBuffer.empty[Long]

  private var files = 0L
  private var bytes = 0L

  def numFiles: Long = files
  def sizeBytes: Long = bytes

  /** As for [[SpillableBuffer]]. */
  def deleteOnExit(): Unit = buffer.deleteOnExit()

  /** The number of directories, including the table's own. */
  def numListedDirectories: Long = tree.numListed

  def add(path: String, sizeBytes: Long): Unit = synchronized {
    if (files % ChunkSize == 0) chunks += buffer.size
    out.writeUTF(path)
    files += 1
    bytes += sizeBytes
  }

  def addDirectory(directory: ListedDirectory): Unit = synchronized(tree.add(directory))

  /** The files, in no order. */
  def paths(): Iterator[String] = (0 until numChunks).iterator.flatMap(chunk)

  def numChunks: Int = chunks.size

  /** The files of a chunk: [[UnusedFiles.ChunkSize]], or fewer in the last one. */
  def chunk(n: Int): IndexedSeq[String] = {
    val count = math.min(ChunkSize.toLong, files - n.toLong * ChunkSize).toInt
    val in = new DataInputStream(new BufferedInputStream(buffer.open(chunks(n)), 1 << 16))
    try IndexedSeq.fill(count)(in.readUTF())
    finally in.close()
  }

  /** The directories that are empty once the files are deleted, each after those below it. */
  lazy val directories: Seq[String] = tree.removable

  override def close(): Unit = out.close()
}

private[vacuum] object UnusedFiles {

  /** So few that the paths of a chunk are a small task. */
  val ChunkSize = 4096
}

/**
 * A directory as VACUUM found it.
 *
 * @param path relative to the table; empty for the table's own
 * @param keepsFiles whether it has an entry that stays, other than directories
 * @param numDirectories the number of directories directly in it, without hidden ones
 */
private[vacuum] final case class ListedDirectory(
    path: String,
    modificationTimeMs: Long,
    keepsFiles: Boolean,
    numDirectories: Int
)

/**
 * Finds the directories that are empty without the unused files. One that was changed after the cutoff stays, because a
 * writer may have just made it. Only those that keep no file are in memory.
 */
private[vacuum] final class UnusedDirectories(cutoffMs: Long) {
  private val candidates = mutable.HashMap.empty[String, Int]
  private var listed = 0L

  def numListed: Long = listed

  def add(directory: ListedDirectory): Unit = {
    listed += 1
    val isRoot = directory.path.isEmpty
    if (!isRoot && !directory.keepsFiles && directory.modificationTimeMs < cutoffMs)
      candidates(directory.path) = directory.numDirectories
  }

  def removable: Seq[String] = {
    val removed = mutable.HashMap.empty[String, Int].withDefaultValue(0)
    candidates.keys.toSeq
      .sortBy(path => (-path.count(_ == '/'), path))
      .filter { path =>
        val isEmpty = removed(path) == candidates(path)
        val slash = path.lastIndexOf('/')
        if (isEmpty && slash >= 0) removed(path.substring(0, slash)) += 1
        isEmpty
      }
  }
}
