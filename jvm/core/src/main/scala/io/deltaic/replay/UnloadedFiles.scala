package io.deltaic.replay

import scala.collection.immutable.HashSet
import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

import io.deltaic.log.{Checkpoint, LogThreads}
import io.deltaic.protocol.{AddFile, DeltaicException, RemoveFile}
import io.deltaic.replay.checkpoint.UnreadableContent

/**
 * File actions that stay in a checkpoint because they may not fit into the driver's memory. Readers, in any process,
 * read the slices and skip the files that later commits reference.
 *
 * @param sizeBytes the size of all files of the checkpoint
 * @param superseded the keys that commits after the checkpoint reference: only these commits determine the state of
 *   these files (Protocol § Action Reconciliation)
 * @param conf the configuration of this process; readers in other processes use their own
 */
private[deltaic] final class UnloadedFiles(
    val checkpoint: Checkpoint,
    val sizeBytes: Long,
    val slices: Seq[CheckpointSlice],
    val superseded: HashSet[String],
    conf: Configuration
) {

  def without(keys: Iterable[String]): UnloadedFiles =
    new UnloadedFiles(checkpoint, sizeBytes, slices, superseded ++ keys, conf)

  /** All live files. One slice is read ahead while another is used, so that they are never all in memory. */
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

  /** When the checkpoint was written: it has no tombstones that had expired then. */
  def writtenAtMs: Long = slices.map(_.modificationTimeMs).maxOption.getOrElse(Long.MaxValue)

  /** The approximate heap size in bytes. */
  lazy val retainedBytes: Long =
    UnloadedFiles.SliceBytes * slices.size +
      superseded.iterator.map(key => FileBlock.stringBytes(key) + UnloadedFiles.SlotBytes).sum
}

private object UnloadedFiles {
  private val SliceBytes = 400L

  /** The inner nodes of a hash set, per member. */
  private val SlotBytes = 24L
}
