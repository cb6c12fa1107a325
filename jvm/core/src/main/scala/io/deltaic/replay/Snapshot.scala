package io.deltaic.replay

import scala.collection.immutable.HashMap

import org.apache.hadoop.fs.Path

import io.deltaic.protocol._

/**
 * A table at one version. Immutable, and safe to share between threads.
 *
 * @param table the root directory, qualified
 * @param timestampMs when the version was committed: its in-commit timestamp where the table keeps those, else the
 *   modification time of its commit file
 * @param domains the metadata domains that are not removed
 */
final class Snapshot private[replay] (
    val table: Path,
    val version: Long,
    val timestampMs: Long,
    val protocol: Protocol,
    val metadata: Metadata,
    val files: FileTable,
    val transactions: Map[String, SetTransaction],
    val domains: Map[String, DomainMetadata],
    tombstoneMap: HashMap[String, RemoveFile]
) {

  /** The logical files removed from the table whose `remove` the log still holds, expired or not. */
  def tombstones: Iterator[RemoveFile] = tombstoneMap.valuesIterator

  override def toString: String = s"Snapshot($table, version $version, ${files.size} files)"

  private[replay] def state: TableState =
    TableState(
      table,
      Some(protocol),
      Some(metadata),
      files,
      tombstoneMap,
      transactions,
      domains
    )
}
