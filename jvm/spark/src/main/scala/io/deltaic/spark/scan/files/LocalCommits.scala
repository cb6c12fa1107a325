package io.deltaic.spark.scan.files

import java.util

import org.apache.hadoop.fs.Path

/**
 * A commit of this process.
 *
 * @param creation counts the tables that the process created at the same path, one after the other;
 *   0 for a table that existed before
 */
private[spark] final case class LocalCommit(creation: Long, version: Long) {

  def isNewerThan(other: LocalCommit): Boolean =
    creation > other.creation || creation == other.creation && version > other.version
}

/**
 * The newest commit of this process to each table. Data that was loaded or cached before that commit is stale.
 */
private[spark] object LocalCommits {

  /** An entry takes some 300 bytes. */
  private val MaxTables = 50000

  private val newest = new util.LinkedHashMap[Path, LocalCommit](16, 0.75f, true) {
    override def removeEldestEntry(eldest: util.Map.Entry[Path, LocalCommit]): Boolean =
      size > MaxTables
  }

  private var creations = 0L

  private val none = LocalCommit(creation = 0, version = -1)

  def add(table: Path, version: Long): Unit = newest.synchronized {
    val current = of(table)
    val creation = if (version == 0) { creations += 1; creations }
    else current.creation
    val commit = LocalCommit(creation, version)
    if (commit.isNewerThan(current)) newest.put(table, commit): Unit
  }

  /** Older than any commit where there is none. */
  def of(table: Path): LocalCommit = newest.synchronized(newest.getOrDefault(table, none))

  /** A version of the table that is now at the path, as if it had been committed here. */
  def at(table: Path, version: Long): LocalCommit = of(table).copy(version = version)
}
