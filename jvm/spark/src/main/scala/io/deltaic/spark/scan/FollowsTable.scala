package io.deltaic.spark.scan

import org.apache.hadoop.fs.Path

/** A table in a plan, as far as data that was cached from it can become stale. */
private[spark] trait FollowsTable {

  /** The table's root directory. */
  def location: Path

  /** False for a version that was named, which no write changes. */
  def followsNewVersions: Boolean

  /** A plan that has this table, and has not been executed yet, reads the newest version from now on. */
  def overtake(): Unit

  /** Data cached from this table is, from now on, that of `version`: no data of an older one is cached any more. */
  def refreshedTo(version: Long): Unit

  /** Data cached from this table is what was cached from another one, which it replaces in plans. */
  def replaces(older: FollowsTable): Unit
}

/** The versions that data cached from a table stands for, which its copies in plans share. */
private[spark] final class CachedVersions(first: Long) {
  @volatile private var versions = Set(first)

  def add(version: Long): Unit = synchronized(versions += version)

  /** The same object for both, so that later versions are those of both, too. */
  def joinedTo(older: CachedVersions): CachedVersions = {
    versions.foreach(older.add)
    older
  }

  def meet(others: CachedVersions): Boolean = versions.exists(others.versions)
}
