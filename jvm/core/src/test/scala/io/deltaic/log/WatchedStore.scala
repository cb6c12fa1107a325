package io.deltaic.log

import java.io.{FilterInputStream, InputStream, OutputStream}
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.LongAdder

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * A local store that records its calls, and whose first listings can miss commits, as during concurrent commits.
 * Configure it with `spark.deltaic.logStore.file.impl`.
 */
final class WatchedStore(conf: Configuration) extends LogStore {
  require(conf != null)

  private val toHide = new ConcurrentLinkedQueue[Set[Long]]
  WatchedStore.last = this

  /** The names of the files that were read. */
  val reads = new ConcurrentLinkedQueue[String]

  /** The number of bytes read. */
  val bytesRead = new LongAdder

  /** The first name of each listing. */
  val listedFrom = new ConcurrentLinkedQueue[String]

  def listings: Int = listedFrom.size

  /** The files that each of the next listings misses. */
  def hide(versions: Set[Long]*): Unit = versions.foreach(toHide.add)

  override def read(path: Path): Array[Byte] = {
    val content = LocalLogStore.read(path)
    reads.add(path.getName)
    bytesRead.add(content.length.toLong)
    content
  }

  override def open(path: Path): InputStream = {
    val content = LocalLogStore.open(path)
    reads.add(path.getName)
    new FilterInputStream(content) {
      override def read(bytes: Array[Byte], from: Int, length: Int): Int = {
        val count = super.read(bytes, from, length)
        bytesRead.add(math.max(0, count).toLong)
        count
      }
    }
  }

  override def listFrom(logDirectory: Path, firstName: String): Iterator[FileStatus] = {
    listedFrom.add(firstName)
    val hidden = Option(toHide.poll()).getOrElse(Set.empty[Long]).map(v => f"$v%020d.json")
    LocalLogStore.listFrom(logDirectory, firstName).filterNot(f => hidden(f.getPath.getName))
  }

  override def status(path: Path): Option[FileStatus] = LocalLogStore.status(path)
  override def makeDirectory(path: Path): Unit = LocalLogStore.makeDirectory(path)
  override def replace(path: Path, content: Array[Byte]): Unit =
    LocalLogStore.replace(path, content)
  override def delete(path: Path): Boolean = LocalLogStore.delete(path)
  override protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome = throw new UnsupportedOperationException("tests write with the table builder")
}

object WatchedStore {

  /** The most recently created store. */
  @volatile var last: WatchedStore = _
}
