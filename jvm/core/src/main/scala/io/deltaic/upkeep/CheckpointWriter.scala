package io.deltaic.upkeep

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
 * What was written, as `_last_checkpoint` tells it.
 *
 * @param actions rows in all files, sidecars included
 * @param topLevel the file with a unique name, of a V2 checkpoint
 */
private[upkeep] final case class WrittenCheckpoint(
    version: Long,
    actions: Long,
    adds: Long,
    sizeBytes: Long,
    parts: Option[Int] = None,
    topLevel: Option[FileStatus] = None
)

/**
 * Writes checkpoints (Protocol § Checkpoints), row by row from the snapshot. Every file appears complete or not at all,
 * and none is written over: whoever else made the same checkpoint made the same state.
 *
 * @param guard throws if the table was replaced meanwhile, whose new log must be spared; asked before a file gets its name
 */
private[upkeep] final class CheckpointWriter(
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
  private val header: Seq[Action] = {
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

  /** Of a distributed snapshot this reads all of its checkpoint. */
  private def fileCount: Long = {
    val addCount = if (snapshot.isDistributed) adds.size else snapshot.filesInMemory.size
    tombstones.size.toLong + addCount
  }

  /**
   * A checkpoint of the V1 spec under the classic name; in several files if it has more than `partSize` rows.
   *
   * @return None if there is one already
   */
  def writeClassic(partSize: Option[Int]): Option[WrittenCheckpoint] = {
    val parts = partSize.fold(1L)(size => (header.size + fileCount + size - 1) / size)
    if (parts > 1) writeParts(Math.toIntExact(parts))
    else {
      val path = FileNames.classicCheckpoint(directory, version)
      write(path, CheckpointSchema.full(layout), header.iterator ++ tombstones ++ adds)
        .map(file => written(Seq(file)))
    }
  }

  /**
   * Who writes the same part must write the same rows, so they go by the hash of the file's identity
   * (Protocol § Multi-part checkpoint).
   */
  private def writeParts(count: Int): Option[WrittenCheckpoint] = {
    val byVector = TableFeatures.isListed(snapshot.protocol, "deletionVectors")
    val headerPart = PartHash.part(null, null, count)
    val files = (1 to count).map { part =>
      val mine = (tombstones ++ adds).filter { file =>
        PartHash.part(file.path, if (byVector) file.dvId.orNull else null, count) == part - 1
      }
      val rows = if (headerPart == part - 1) header.iterator ++ mine else mine
      val path = FileNames.checkpointPart(directory, version, part, count)
      write(path, CheckpointSchema.full(layout), rows)
    }
    Option.when(files.forall(_.isDefined)) {
      written(files.flatten).copy(parts = Some(count))
    }
  }

  /**
   * A checkpoint of the V2 spec under a unique name, its files in sidecars.
   *
   * @param sidecarSize how many files one sidecar holds at most
   * @param alsoClassic whether the same is written under the classic name as well, by which older readers find a
   *   protocol that tells them to go (Protocol § Handling Backward compatibility)
   */
  def writeV2(sidecarSize: Int, alsoClassic: Boolean): Option[WrittenCheckpoint] = {
    val files = tombstones ++ adds
    if (files.hasNext) store.makeDirectory(FileNames.sidecarDirectory(directory))
    val sidecarFiles = Iterator.from(1).takeWhile(_ => files.hasNext).map { number =>
      val name = FileNames.sidecar(version, number, UUID.randomUUID())
      val path = new Path(FileNames.sidecarDirectory(directory), name)
      writeNew(path, CheckpointSchema.fileActions(layout), new Next(files, sidecarSize))
    }.toVector
    val rows = Seq(CheckpointMetadata(version)) ++ header ++
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

  /** What the writer holds in memory at most, and what one thread reads at a time. */
  private val RowGroupBytes = 32L << 20

  /** The next rows, after which others may take what is left. */
  private final class Next(rows: Iterator[Action], limit: Int) extends Iterator[Action] {
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

  /** A stream that its owner closes, as the file of a Parquet writer. */
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
