package io.deltaic.spark.vacuum

import java.io.File

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils

import io.deltaic.protocol.{DeletionVectorDescriptor, LogPath}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.util.LocalFiles

/**
 * The paths of a table's files relative to its directory, which is how files of the log and of a listing are compared.
 *
 * The log may name a file below the table by an absolute path, possibly by another scheme of the same store (`s3` and
 * `s3a`) or through a symbolic link to the directory. Only the path part of such a URI is compared, so that the file
 * counts as used.
 *
 * @param table the root directory, qualified
 * @param owner the table whose log names the files: this one, or another one that uses files of this one
 */
private[vacuum] final class TablePaths(val table: Path, owner: Path) extends Serializable {
  def this(table: Path) = this(table, table)

  /** The files of this table that another one uses. */
  def usedBy(other: Path): TablePaths = new TablePaths(table, other)

  private val isLocal = LocalFiles.isLocal(table)

  /** The spellings of the root directory, each with a slash at the end. */
  private val roots: Seq[String] = {
    val root = table.toUri.getPath.stripSuffix("/") + "/"
    if (isLocal) Seq(root, canonical(root) + "/").distinct else Seq(root)
  }

  /** The relative paths that a path of the log may mean; empty if it is outside of the table. */
  def ofLog(logPath: String): Seq[String] =
    if (owner == table) ofOwnLog(logPath)
    else ofPath(LogPath.toAbsolute(owner, logPath)).toSeq

  private def ofOwnLog(logPath: String): Seq[String] = {
    val known = LogPath.canonical(table, logPath)
    val isAbsolute = known.startsWith("/") || known.contains(":/")
    val decoded = if (isAbsolute) ofPath(LogPath.toAbsolute(table, logPath)) else Some(known)
    // A writer may have forgotten to encode the path.
    val asSpelled = Option.when(!isAbsolute && (known ne logPath) && known != logPath)(logPath)
    decoded.toSeq ++ asSpelled
  }

  /** The relative path of a file; None if it is outside of the table. */
  def ofPath(path: Path): Option[String] = {
    val full = path.toUri.getPath
    below(full).orElse(if (isLocal) below(canonical(full)) else None)
  }

  /**
   * The relative path of the file of a deletion vector; None if it is stored in the log, or in a file outside of the
   * table. A descriptor that cannot be understood is an error: its file is not known, so nothing may be deleted.
   */
  def ofVector(vector: DeletionVectorDescriptor): Option[String] =
    vector.absolutePath(owner).flatMap(ofPath)

  def absolute(relative: String): Path = {
    val root = table.toUri
    new Path(root.getScheme, root.getAuthority, s"${root.getPath.stripSuffix("/")}/$relative")
  }

  private def below(full: String): Option[String] = roots.collectFirst {
    case root if full.startsWith(root) && full.length > root.length => full.substring(root.length)
  }

  private def canonical(path: String): String = new File(path).getCanonicalPath
}

/**
 * The names of files and directories that VACUUM leaves alone: those that begin with `_` or `.`, except the directories
 * of change data, of an index, and of partitions.
 *
 * @param partitionPrefixes the names of partition columns in directory names, with the equals sign
 * @param hidesMetadata whether the directory `metadata` belongs to Iceberg
 */
private[vacuum] final case class HiddenNames(
    partitionPrefixes: Seq[String],
    hidesMetadata: Boolean
) {
  def apply(name: String): Boolean =
    (name.startsWith("_") || name.startsWith(".")) && !name.startsWith("_change_data") &&
    !name.startsWith("_delta_index") && !partitionPrefixes.exists(name.startsWith) ||
    (hidesMetadata && name == "metadata")

  /** Whether any part of a relative path is hidden. */
  def inPath(relative: String): Boolean =
    if (relative.indexOf('/') < 0) apply(relative) else relative.split('/').exists(apply)
}

private[vacuum] object HiddenNames {

  def of(snapshot: Snapshot): HiddenNames = {
    val schema = TableSchema.of(snapshot)
    val columns = schema.partitionColumns
    val names = (columns ++ columns.map(schema.logName)).distinct
    val configuration = snapshot.metadata.configuration
    HiddenNames(
      names.map(name => ExternalCatalogUtils.escapePathName(name) + "="),
      configuration.exists { case (name, value) =>
        name.startsWith("delta.enableIcebergCompat") && value.equalsIgnoreCase("true") ||
        name == "delta.universalFormat.enabledFormats"
      }
    )
  }
}
