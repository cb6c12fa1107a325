package io.deltaic.maintenance

import java.io.OutputStream
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.io.{OutputFile, PositionOutputStream}
import org.apache.parquet.schema.MessageType

import io.deltaic.log.{FileNames, LogStore, WriteOutcome}
import io.deltaic.protocol._
import io.deltaic.replay.Snapshot

/**
 * The written checkpoint, as described in `_last_checkpoint`.
 *
 * @param actions the number of rows in all files, including sidecars
 * @param topLevel the UUID-named file of a V2 checkpoint
 */
private[maintenance] final case class WrittenCheckpoint(
    version: Long,
    actions: Long,
    adds: Long,
    sizeBytes: Long,
    parts: Option[Int] = None,
    topLevel: Option[FileStatus] = None
)

/**
 * Writes checkpoints (Protocol § Checkpoints), row by row from the snapshot. Every file appears complete or not at all,
 * and none is overwritten: a concurrent writer of the same checkpoint writes the same state.
 *
 * @param guard throws if the table was replaced in the meantime, so that nothing is written to the new log; called
 *   before a file gets its name
 */
private[maintenance] final class CheckpointWriter(
    snapshot: Snapshot,
    layout: CheckpointLayout,
    store: LogStore,
    conf: Configuration,
    nowMs: Long,
    guard: () => Unit
) {
  import CheckpointWriter._

  private val directory = FileNames.logDirectory(snapshot.table)
  private val version = snapshot.version

  /** Tombstones and transactions that have expired since the snapshot was made are left out. */
  private val nonFileActions: Seq[Action] = {
    val transactions = snapshot.unexpiredTransactions(nowMs).values
    Seq(snapshot.protocol, snapshot.metadata) ++ transactions.toSeq.sortBy(_.appId) ++
      snapshot.domains.values.toSeq.sortBy(_.domain)
  }

  private def tombstones: Iterator[FileAction] = {
    val cutoffMs = TableProperties.deletedFileRetentionMs(snapshot.metadata).map(nowMs - _)
    snapshot.tombstones.filter { r =>
      cutoffMs.forall(cutoff => r.deletionTimestampMs.exists(_ > cutoff))
    }
  }

  private def adds: Iterator[FileAction] = snapshot.adds

  /** For a distributed snapshot this reads its whole checkpoint. */
  private def fileCount: Long = {
    val addCount = if (snapshot.isDistributed) adds.size else snapshot.filesInMemory.size
    tombstones.size.toLong + addCount
  }

  /**
   * Writes a checkpoint of the V1 spec with the classic name; in several parts if it has more than `partSize` rows.
   *
   * @return None if it exists already
   */
  def writeClassic(partSize: Option[Int]): Option[WrittenCheckpoint] = {
    val parts = partSize.fold(1L)(size => (nonFileActions.size + fileCount + size - 1) / size)
    if (parts > 1) writeParts(Math.toIntExact(parts))
    else {
      val path = FileNames.classicCheckpoint(directory, version)
      write(path, CheckpointSchema.full(layout), nonFileActions.iterator ++ tombstones ++ adds)
        .map(file => written(Seq(file)))
    }
  }

  /**
   * Concurrent writers must write the same rows to the same part, so the hash of the file's identity determines the
   * part (Protocol § Multi-part checkpoint).
   */
  private def writeParts(count: Int): Option[WrittenCheckpoint] = {
    val byVector = TableFeatures.isListed(snapshot.protocol, "deletionVectors")
    val nonFilePart = PartHash.part(null, null, count)
    val files = (1 to count).map { part =>
      val mine = (tombstones ++ adds).filter { file =>
        PartHash.part(file.path, if (byVector) file.dvId.orNull else null, count) == part - 1
      }
      val rows = if (nonFilePart == part - 1) nonFileActions.iterator ++ mine else mine
      val path = FileNames.checkpointPart(directory, version, part, count)
      write(path, CheckpointSchema.full(layout), rows)
    }
    Option.when(files.forall(_.isDefined)) {
      written(files.flatten).copy(parts = Some(count))
    }
  }

  /**
   * Writes a checkpoint of the V2 spec with a unique name, with file actions in sidecars.
   *
   * @param sidecarSize the maximum number of file actions in a sidecar
   * @param alsoClassic whether the same content is also written with the classic name, so that older readers find a
   *   protocol that they refuse (Protocol § Handling Backward compatibility)
   */
  def writeV2(sidecarSize: Int, alsoClassic: Boolean): Option[WrittenCheckpoint] = {
    val files = tombstones ++ adds
    if (files.hasNext) store.makeDirectory(FileNames.sidecarDirectory(directory))
    val sidecarFiles = Iterator.from(1).takeWhile(_ => files.hasNext).map { number =>
      val name = FileNames.sidecar(version, number, UUID.randomUUID())
      val path = new Path(FileNames.sidecarDirectory(directory), name)
      writeNew(path, CheckpointSchema.fileActions(layout), new LimitedIterator(files, sidecarSize))
    }.toVector
    val rows = Seq(CheckpointMetadata(version)) ++ nonFileActions ++
      sidecarFiles.map(f => Sidecar(f.path.getName, f.sizeBytes, modifiedMs(f.path)))
    val uuidName = FileNames.uuidCheckpoint(directory, version, UUID.randomUUID())
    val topLevel = writeNew(uuidName, CheckpointSchema.topLevel(layout), rows.iterator)
    if (alsoClassic) {
      val path = FileNames.classicCheckpoint(directory, version)
      write(path, CheckpointSchema.topLevel(layout), rows.iterator)
    }
    Some(written(topLevel +: sidecarFiles).copy(topLevel = store.status(topLevel.path)))
  }

  private def written(files: Seq[WrittenFile]): WrittenCheckpoint = WrittenCheckpoint(
    version,
    files.map(_.actions).sum,
    files.map(_.adds).sum,
    files.map(_.sizeBytes).sum
  )

  private def modifiedMs(path: Path): Long =
    store.status(path).fold(nowMs)(_.getModificationTime)

  private def writeNew(path: Path, schema: MessageType, rows: Iterator[Action]): WrittenFile =
    write(path, schema, rows).getOrElse(throw new IllegalStateException(s"$path exists already"))

  /** None if the file exists already. */
  private def write(
      path: Path,
      schema: MessageType,
      rows: Iterator[Action]
  ): Option[WrittenFile] = {
    var sizeBytes, actionCount, addCount = 0L
    val outcome = store.writeBesideIfAbsent(path, guard) { out =>
      val file = new StreamFile(path, out)
      val builder = new Builder(file, new ActionWriteSupport(schema, layout))
      val writer = builder
        .withConf(conf)
        .withCompressionCodec(CompressionCodecName.SNAPPY)
        .withRowGroupSize(RowGroupBytes)
        .build()
      try
        rows.foreach { row =>
          writer.write(row)
          actionCount += 1
          if (row.isInstanceOf[AddFile]) addCount += 1
        }
      finally writer.close()
      sizeBytes = file.position
    }
    Option.when(outcome == WriteOutcome.Written) {
      WrittenFile(path, sizeBytes, actionCount, addCount)
    }
  }
}

private object CheckpointWriter {

  /** The maximum size of the writer's buffer, and the unit of parallel reads. */
  private val RowGroupBytes = 32L << 20

  /** Iterates over the next rows up to a limit; the rest stays in `rows`. */
  private final class LimitedIterator(rows: Iterator[Action], limit: Int) extends Iterator[Action] {
    private var left = limit
    override def hasNext: Boolean = left > 0 && rows.hasNext
    override def next(): Action = { left -= 1; rows.next() }
  }

  private final case class WrittenFile(path: Path, sizeBytes: Long, actions: Long, adds: Long)

  private final class Builder(file: OutputFile, support: WriteSupport[Action])
      extends ParquetWriter.Builder[Action, Builder](file) {
    override def self(): Builder = this
    override def getWriteSupport(conf: Configuration): WriteSupport[Action] = support
  }

  /** Adapts a stream to a Parquet output file; the owner of the stream closes it. */
  private final class StreamFile(path: Path, out: OutputStream) extends OutputFile {
    var position = 0L

    private val stream = new PositionOutputStream {
      override def getPos: Long = position
      override def write(byte: Int): Unit = { out.write(byte); position += 1 }
      override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
        out.write(bytes, offset, length)
        position += length
      }
      override def flush(): Unit = out.flush()
      override def close(): Unit = out.flush()
    }

    override def create(blockSizeHint: Long): PositionOutputStream = stream
    override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream = stream
    override def supportsBlockSize(): Boolean = false
    override def defaultBlockSize(): Long = 0
    override def getPath: String = path.toString
  }
}
