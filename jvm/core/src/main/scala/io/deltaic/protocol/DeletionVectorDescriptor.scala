package io.deltaic.protocol

import java.util.UUID

import org.apache.hadoop.fs.Path

/**
 * The location of a deletion vector (Protocol § Deletion Vector Descriptor Schema).
 *
 * A descriptor is stored as spelled in the log, even if it is malformed: the log must stay
 * readable, and a malformed vector that is never read is harmless. Methods that derive something
 * from it validate it.
 *
 * @param storageType `u`: a file named by a UUID, relative to the table; `i`: inline; `p`: a file
 *   at an absolute path
 * @param pathOrInlineDv depends on the storage type: prefix and Z85 of a UUID, Z85 of the bitmap,
 *   or a path
 * @param offset where the DV starts in its file; absent for inline vectors
 * @param sizeBytes size of the serialized bitmap, before any encoding
 * @param cardinality number of rows the DV removes from the file
 */
final case class DeletionVectorDescriptor(
    storageType: String,
    pathOrInlineDv: String,
    offset: Option[Int] = None,
    sizeBytes: Int,
    cardinality: Long
) {
  import DeletionVectorDescriptor._

  /** Identifies the vector among those of one data file (Protocol § Derived Fields). */
  def uniqueId: String = s"$storageType$pathOrInlineDv" + offset.fold("")(o => s"@$o")

  def isInline: Boolean = storageType == Inline

  /**
   * The file of the vector, `None` if it is inline (Protocol § Derived Fields).
   *
   * @throws DeltaicThrowable DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID if it names no file
   */
  def absolutePath(table: Path): Option[Path] =
    if (isInline) None
    else {
      def refuse(reason: String) = throw invalid(table.toString, Unknown, reason)
      Some(file(table).fold(refuse, identity))
    }

  /**
   * The serialized bitmap of an inline vector, `None` if it is stored in a file.
   *
   * @throws DeltaicThrowable DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID if the string is not
   *   `sizeBytes` bytes in Z85
   */
  def inlineBytes: Option[Array[Byte]] =
    if (isInline) Some(inline.fold(reason => throw invalid(Unknown, Unknown, reason), identity))
    else None

  /** The error for a descriptor that cannot be used. */
  private[deltaic] def invalid(
      table: String,
      dataFile: String,
      reason: String
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID",
    Map(
      "table" -> table,
      "dataFile" -> dataFile,
      "deletionVector" -> displayId,
      "reason" -> reason
    )
  )

  /** The unique id, truncated for error messages: an inline vector may be long. */
  private[deltaic] def displayId: String = {
    val id = uniqueId
    if (id.length <= MaxDisplayChars) id else id.take(MaxDisplayChars) + "..."
  }

  /** The bytes of an inline vector, or what is wrong with them. */
  private[deltaic] def inline: Either[String, Array[Byte]] = for {
    _ <- numbers
    bytes <- Z85.decode(pathOrInlineDv, sizeBytes)
  } yield bytes

  /** The file of a vector that is not inline, or what is wrong with it. */
  private[deltaic] def file(table: Path): Either[String, Path] = numbers.flatMap { _ =>
    storageType match {
      case Relative => relativeFile(table)
      case Absolute => absoluteFile(table)
      case other =>
        Left(s"its storage type '$other' is none of '$Relative', '$Inline' and '$Absolute'")
    }
  }

  private def numbers: Either[String, Unit] =
    if (sizeBytes < 0) Left(s"sizeInBytes $sizeBytes is negative")
    else if (cardinality < 0) Left(s"cardinality $cardinality is negative")
    else if (offset.exists(_ < 0)) Left(s"offset ${offset.get} is negative")
    else if (isInline && offset.isDefined) Left("an inline deletion vector has no offset")
    else Right(())

  private def relativeFile(table: Path): Either[String, Path] = {
    val (prefix, id) = pathOrInlineDv.splitAt(pathOrInlineDv.length - Z85.UuidChars)
    for {
      _ <- if (isDirectoryName(prefix)) Right(()) else Left(s"'$prefix' is not a directory name")
      uuid <- Z85.decodeUuid(id).left.map(reason => s"its file's UUID cannot be decoded: $reason")
    } yield relativePath(table, prefix, uuid)
  }

  /** As lenient as for data files. */
  private def absoluteFile(table: Path): Either[String, Path] =
    if (!LogPath.isAbsolute(pathOrInlineDv)) Left(s"'$pathOrInlineDv' is not an absolute path")
    else
      try Right(LogPath.toAbsolute(table, pathOrInlineDv))
      catch {
        case error: IllegalArgumentException =>
          Left(s"'$pathOrInlineDv' is not a path: ${error.getMessage}")
      }
}

object DeletionVectorDescriptor {

  /** The prefix of the names of deletion vector files. */
  private[deltaic] val FilePrefix = "deletion_vector_"

  /** Storage type of a vector in a file whose name is derived from a UUID. */
  val Relative: String = "u"

  /** Storage type of a vector that is stored in the log. */
  val Inline: String = "i"

  /** Storage type of a vector in a file at an absolute path. */
  val Absolute: String = "p"

  private val MaxDisplayChars = 200

  /** Replaces, in an error, the table or data file that only the caller knows. */
  private val Unknown = "(not known here)"

  /** `pathOrInlineDv` of vectors in the file at [[relativePath]]. */
  private[deltaic] def relativeId(prefix: String, uuid: UUID): String =
    prefix + Z85.encodeUuid(uuid)

  /** Protocol § Derived Fields: `<table>/<prefix>/deletion_vector_<uuid>.bin`. */
  private[deltaic] def relativePath(table: Path, prefix: String, uuid: UUID): Path = {
    val directory = if (prefix.isEmpty) table else new Path(table, prefix)
    new Path(directory, s"$FilePrefix$uuid.bin")
  }

  /** A prefix is one directory below the table; it must not point elsewhere. */
  private def isDirectoryName(prefix: String): Boolean =
    prefix != "." && prefix != ".." && !prefix.exists(c => "/\\:".indexOf(c.toInt) >= 0 || c < ' ')
}
