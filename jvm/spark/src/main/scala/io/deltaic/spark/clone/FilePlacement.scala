package io.deltaic.spark.clone

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.UUID

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, LogPath}
import io.deltaic.replay.Snapshot

/** Where a clone has the files of its source. */
private[clone] sealed trait FilePlacement {

  /** The path of a data file as the log of the clone spells it. */
  def dataFile(file: AddFile): String

  def deletionVector(vector: DeletionVectorDescriptor): DeletionVectorDescriptor
}

/** A shallow clone references the files of its source by absolute paths. */
private[clone] final class ReferencedFiles(source: Path, clone: Path) extends FilePlacement {

  /** A file below the clone, whose own source it may be, has a relative path. */
  override def dataFile(file: AddFile): String =
    LogPath.relativize(clone, LogPath.toAbsolute(source, file.path))

  override def deletionVector(vector: DeletionVectorDescriptor): DeletionVectorDescriptor =
    vector.absolutePath(source).fold(vector) { file =>
      vector.copy(
        storageType = DeletionVectorDescriptor.Absolute,
        pathOrInlineDv = LogPath.absolute(file)
      )
    }
}

/**
 * A deep clone has copies of the files. The name of a copy is determined by the source table and the file, so that a
 * clone that was interrupted, or is repeated, recognizes the copies that it has. No other file can have such a name.
 *
 * @param sourceId the id of the source table
 * @param filesChange whether a file may be written again: the name of its copy has the time of it, too
 */
private[clone] final class CopiedFiles private (
    source: Path,
    sourceId: String,
    filesChange: Boolean
) extends FilePlacement {

  private val label = CopiedFiles.digest(sourceId).take(CopiedFiles.LabelChars)

  /** The beginning of the names of all copies of data files. */
  private val prefix = s"$label-"

  /** Whether a file in the directory of a clone is a copy, or a part of one. */
  def isCopy(file: Path): Boolean =
    file.getName.startsWith(prefix) || file.getParent.getName == label

  /** A new name for a copy that is being made: no two tasks write the same file. */
  def temporary(copy: Path): Path =
    new Path(copy.getParent, s"$prefix${UUID.randomUUID}.copying")

  override def dataFile(file: AddFile): String = {
    val spelled = LogPath.relativize(source, LogPath.toAbsolute(source, file.path))
    val beginning = if (filesChange) s"$prefix${file.modificationTimeMs.toHexString}-" else prefix
    def digest = beginning + CopiedFiles.digest(spelled) + CopiedFiles.extension(spelled)
    if (LogPath.isAbsolute(spelled))
      digest // A file outside of the source, which is a clone itself.
    else {
      val name = spelled.lastIndexOf('/') + 1
      val copy = beginning + spelled.substring(name)
      spelled.substring(0, name) + (if (copy.length <= CopiedFiles.MaxNameChars) copy else digest)
    }
  }

  override def deletionVector(vector: DeletionVectorDescriptor): DeletionVectorDescriptor =
    vector.absolutePath(source).fold(vector) { file =>
      val uuid = UUID.nameUUIDFromBytes(s"$sourceId $file".getBytes(UTF_8))
      vector.copy(
        storageType = DeletionVectorDescriptor.Relative,
        pathOrInlineDv = DeletionVectorDescriptor.relativeId(label, uuid)
      )
    }
}

private[clone] object CopiedFiles {
  private val LabelChars = 12

  def ofTable(source: Snapshot): CopiedFiles =
    new CopiedFiles(source.table, source.metadata.id, filesChange = false)

  /** A folder of Parquet files has no other id than its path. */
  def ofParquet(root: Path): CopiedFiles =
    new CopiedFiles(root, root.toString, filesChange = true)

  /** File systems allow 255 bytes. */
  private val MaxNameChars = 200

  private def digest(text: String): String =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).take(16)
      .map(byte => f"${byte & 0xff}%02x").mkString

  private def extension(path: String): String = {
    val name = path.substring(path.lastIndexOf('/') + 1)
    val dot = name.indexOf('.')
    if (dot < 0 || name.length - dot > 40) ".parquet" else name.substring(dot)
  }
}
