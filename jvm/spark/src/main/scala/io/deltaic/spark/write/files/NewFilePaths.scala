package io.deltaic.spark.write.files

import java.util.UUID

import scala.util.Random

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeletionVectorDescriptor

/**
 * Unique paths of the files of a write, relative to the table.
 *
 * @param kind         the folder of the files, and the prefix of their names
 * @param writeUuidPrefix half of the UUIDs in the names of the write's files, by which the files of lost
 *                     tasks are found
 * @param randomPrefixLength how many random characters replace the partition directories, if any
 */
private[write] final case class NewFilePaths(
    kind: FileKind,
    writeUuidPrefix: Long,
    randomPrefixLength: Option[Int]
) {

  /** @param partition the directory of the partition */
  def next(taskPartition: Int, partition: => String, extension: String): String = {
    val name = f"${kind.prefix}$taskPartition%05d-${newId()}-c000$extension"
    val directory =
      randomPrefixLength.fold(partition)(Random.alphanumeric.take(_).mkString)
    (kind.folder.toSeq :+ directory :+ name).filter(_.nonEmpty).mkString(Path.SEPARATOR)
  }

  def newId(): UUID = new UUID(writeUuidPrefix, UUID.randomUUID().getLeastSignificantBits)
}

private[write] object NewFilePaths {

  def newUuidPrefix(): Long = UUID.randomUUID().getMostSignificantBits

  def hasUuidPrefix(writeUuidPrefix: Long, fileName: String): Boolean =
    prefixes.exists(fileName.startsWith) &&
    fileName.contains(new UUID(writeUuidPrefix, 0L).toString.take(19))

  private def prefixes: Seq[String] =
    DeletionVectorDescriptor.FilePrefix +: FileKind.all.map(_.prefix)
}

/** The kind of the files of a write. */
private[write] sealed abstract class FileKind(val folder: Option[String], val prefix: String)
    extends Serializable

private[write] object FileKind {
  case object Data extends FileKind(None, "part-")

  /** Protocol § Change Data Files. */
  case object Changes extends FileKind(Some("_change_data"), "cdc-")

  val all: Seq[FileKind] = Seq(Data, Changes)
}
