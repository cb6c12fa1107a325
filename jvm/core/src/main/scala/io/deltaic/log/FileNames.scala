package io.deltaic.log

import java.util.UUID

import org.apache.hadoop.fs.{FileStatus, Path}

/** The names of the files in `_delta_log` (Protocol § Delta Log Entries, § Checkpoints). */
object FileNames {

  val LogDirectory = "_delta_log"
  val LastCheckpoint = "_last_checkpoint"

  /** `00000000000000000007.json` */
  private val commitName = """(\d{20})\.json""".r

  /** `00000000000000000010.checkpoint.parquet` */
  private val classicName = """(\d{20})\.checkpoint\.parquet""".r

  /** `00000000000000000010.checkpoint.0000000002.0000000003.parquet` */
  private val partName = """(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet""".r

  /** `00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json` or `.parquet` */
  private val uuidName = """(\d{20})\.checkpoint\.([0-9A-Za-z-]{36})\.(json|parquet)""".r

  /** `00000000000000000004.00000000000000000006.compacted.json` */
  private val compactedName = """(\d{20})\.(\d{20})\.compacted\.json""".r

  /** `00000000000000000007.crc` */
  private val checksumName = """(\d{20})\.crc""".r

  def logDirectory(table: Path): Path = new Path(table, LogDirectory)

  /** The directory of the sidecars of V2 checkpoints (Protocol § Sidecar Files). */
  def sidecarDirectory(logDirectory: Path): Path = new Path(logDirectory, "_sidecars")

  def commit(logDirectory: Path, version: Long): Path =
    new Path(logDirectory, s"${padded(version)}.json")

  def classicCheckpoint(logDirectory: Path, version: Long): Path =
    new Path(logDirectory, s"${padded(version)}.checkpoint.parquet")

  /** @param part from 1 on */
  def checkpointPart(logDirectory: Path, version: Long, part: Int, parts: Int): Path =
    new Path(logDirectory, f"${padded(version)}.checkpoint.$part%010d.$parts%010d.parquet")

  def uuidCheckpoint(logDirectory: Path, version: Long, uuid: UUID): Path =
    new Path(logDirectory, s"${padded(version)}.checkpoint.$uuid.parquet")

  /** The UUID makes the name unique; the rest is for people. */
  def sidecar(version: Long, number: Int, uuid: UUID): String =
    f"${padded(version)}.checkpoint.$number%010d.$uuid.parquet"

  def compaction(logDirectory: Path, first: Long, last: Long): Path =
    new Path(logDirectory, s"${padded(first)}.${padded(last)}.compacted.json")

  def checksum(logDirectory: Path, version: Long): Path =
    new Path(logDirectory, s"${padded(version)}.crc")

  /** Sorts before the name of every file of this version, and after those of lower ones. */
  def firstOf(version: Long): String = padded(version)

  /** The version of a commit file. */
  private[deltaic] def versionOf(commit: FileStatus): Long =
    commit.getPath.getName.stripSuffix(".json").toLong

  /** Whether the name of a file implies the V2 spec; a classic name implies neither spec (Protocol § V2 Spec). */
  private[deltaic] def isUuidCheckpoint(file: FileStatus): Boolean =
    classify(file.getPath.getName).exists(_.isInstanceOf[UuidCheckpointName])

  /** Whether a directory with a file of this name in its log is a table. */
  private[log] def makesATable(name: String): Boolean = classify(name).exists {
    case _: CompactedName | _: ChecksumName => false
    case _ => true
  }

  private[deltaic] def isJson(file: FileStatus): Boolean = file.getPath.getName.endsWith(".json")

  /** A unique name in the directory of `target` that readers do not take for a log file. */
  private[log] def temporary(target: Path): Path =
    new Path(target.getParent, s".${target.getName}.${UUID.randomUUID()}.tmp")

  private[log] def isTemporary(name: String): Boolean =
    name.startsWith(".") && name.endsWith(".tmp")

  private def padded(version: Long): String = f"$version%020d"

  private[log] sealed trait Kind { def version: Long }
  private[log] final case class CommitName(version: Long) extends Kind
  private[log] final case class ClassicCheckpointName(version: Long) extends Kind
  private[log] final case class CheckpointPartName(version: Long, part: Int, parts: Int)
      extends Kind
  private[log] final case class UuidCheckpointName(version: Long) extends Kind
  private[log] final case class CompactedName(version: Long, last: Long) extends Kind
  private[log] final case class ChecksumName(version: Long) extends Kind

  /** The kind of a file of the log directory, by its name; None for files of other purposes. */
  private[log] def classify(name: String): Option[Kind] = name match {
    case commitName(version) => version.toLongOption.map(CommitName)
    case classicName(version) => version.toLongOption.map(ClassicCheckpointName)
    case partName(version, part, parts) =>
      for {
        v <- version.toLongOption
        o <- part.toIntOption
        p <- parts.toIntOption
        if o >= 1 && o <= p
      } yield CheckpointPartName(v, o, p)
    case uuidName(version, _, _) => version.toLongOption.map(UuidCheckpointName)
    case compactedName(first, last) =>
      for (f <- first.toLongOption; l <- last.toLongOption if f < l) yield CompactedName(f, l)
    case checksumName(version) => version.toLongOption.map(ChecksumName)
    case _ => None
  }
}
