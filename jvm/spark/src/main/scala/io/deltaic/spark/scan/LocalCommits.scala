package io.deltaic.spark.scan

import java.util

import org.apache.hadoop.fs.Path

/**
 * A commit of this process.
 *
 * @param creation which of the tables that the process created one after the other at the same path; 0 for one
 *                 that was there before
 */
private[spark] final case class LocalCommit(creation: Long, version: Long) {

  def isNewerThan(other: LocalCommit): Boolean =
    creation > other.creation || creation == other.creation && version > other.version
}

/**
 * The newest commit of this process to each table. What was loaded or cached of a table before it is stale, whether or
 * not Spark still knows that it is cached.
 */
private[spark] object LocalCommits {

  /** An entry takes some 300 bytes. */
  private val TablesKept = 50000

  private val newest = new util.LinkedHashMap[Path, LocalCommit](16, 0.75f, true) {
    override def removeEldestEntry(eldest: util.Map.Entry[Path, LocalCommit]): Boolean =
      size > TablesKept
  }

  private var creations = 0L

  private val none = LocalCommit(creation = 0, version = -1)

  def add(table: Path, version: Long): Unit = newest.synchronized {
    val known = of(table)
    val creation = if (version == 0) { creations += 1; creations }
    else known.creation
    val commit = LocalCommit(creation, version)
    if (commit.isNewerThan(known)) newest.put(table, commit): Unit
  }

  /** Older than any commit where there is none. */
  def of(table: Path): LocalCommit = newest.synchronized(newest.getOrDefault(table, none))

  /** A version of the table that is now at the path, as if it had been committed here. */
  def at(table: Path, version: Long): LocalCommit = of(table).copy(version = version)
}
