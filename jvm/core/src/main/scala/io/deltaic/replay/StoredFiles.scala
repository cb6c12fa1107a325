package io.deltaic.replay

import scala.collection.immutable.HashSet
import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

import io.deltaic.log.{Checkpoint, LogThreads}
import io.deltaic.protocol.{AddFile, DeltaicException, RemoveFile}

/**
 * File actions that are left where they are, in a checkpoint, because the driver could not hold them all. Whoever wants
 * some of them reads the slices, wherever it runs, and leaves out what later commits mention.
 *
 * @param sizeBytes of all files of the checkpoint
 * @param superseded the keys that commits after the checkpoint mention: those alone say what became of these files
 *   (Protocol § Action Reconciliation)
 * @param conf by which the checkpoint was found; readers in other processes bring their own
 */
private[deltaic] final class StoredFiles(
    val checkpoint: Checkpoint,
    val sizeBytes: Long,
    val slices: Seq[CheckpointSlice],
    val superseded: HashSet[String],
    conf: Configuration
) {

  def without(keys: Iterable[String]): StoredFiles =
    new StoredFiles(checkpoint, sizeBytes, slices, superseded ++ keys, conf)

  /** All that count. One slice is read while another is used, so that they never lie in memory as a whole. */
  def adds: Iterator[AddFile] =
    tables.flatMap(table => (0 until table.size).iterator.map(table.add))

  /** The same as columns. */
  def tables: Iterator[FileTable] = slicewise[FileTable] { (slice, found) =>
    slice.files(conf)(found += _.without(superseded))
  }

  def tombstones: Iterator[RemoveFile] = slicewise[RemoveFile] { (slice, found) =>
    slice.tombstones(conf)((key, remove) => if (!superseded(key)) found += remove)
  }

  private def slicewise[A](
      read: (CheckpointSlice, mutable.Builder[A, Vector[A]]) => Unit
  ): Iterator[A] = LogThreads
    .mapInOrder(slices.iterator, readAhead = 1) { slice =>
      val found = Vector.newBuilder[A]
      UnreadableContent.orElse(read(slice, found)).left.foreach(e => throw unreadable(slice, e))
      found.result()
    }
    .flatten

  private def unreadable(slice: CheckpointSlice, cause: Throwable) = DeltaicException(
    "DELTAIC_CHECKPOINT_UNREADABLE",
    Map(
      "table" -> slice.table,
      "version" -> checkpoint.version.toString,
      "tried" -> s"${slice.path}: ${cause.getMessage}"
    ),
    cause
  )

  /** About how many bytes of heap this takes. */
  lazy val retainedBytes: Long =
    StoredFiles.SliceBytes * slices.size +
      superseded.iterator.map(key => FileBlock.textBytes(key) + StoredFiles.SlotBytes).sum
}

private object StoredFiles {
  private val SliceBytes = 400L

  /** Of a hash set's inner nodes, for each of its members. */
  private val SlotBytes = 24L
}
