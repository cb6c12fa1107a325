package io.deltaic.spark.scan.files

import org.apache.hadoop.fs.Path

/** A table in a plan whose cached data can become stale. */
private[spark] trait FollowsTable {

  /** The table's root directory. */
  def location: Path

  /** False for time travel to a version, which no write changes. */
  def followsNewVersions: Boolean

  /** Whether data cached from this table is older than a commit. */
  def isCachedBefore(commit: LocalCommit): Boolean

  /** Marks the data cached from this table as that of `commit`: no older data is cached any more. */
  def refreshedTo(commit: LocalCommit): Unit

  /** Data cached from this table is what was cached from `older`, which this table replaces in plans. */
  def replaces(older: FollowsTable): Unit
}

/** The versions of the data cached from a table. The copies of the table in plans share this object. */
private[spark] final class CachedVersions(first: LocalCommit) {
  @volatile private var versions = Set(first.version)
  @volatile private var newest = first

  def add(commit: LocalCommit): Unit = addAll(Set(commit.version), commit)

  /** Merges both into one object, so that later versions are added to both. */
  def joinedTo(older: CachedVersions): CachedVersions = {
    if (older ne this) older.addAll(versions, newest)
    older
  }

  private def addAll(others: Set[Long], commit: LocalCommit): Unit = synchronized {
    versions ++= others
    if (commit.isNewerThan(newest)) newest = commit
  }

  def meet(others: CachedVersions): Boolean = versions.exists(others.versions)

  def areBefore(commit: LocalCommit): Boolean = commit.isNewerThan(newest)
}
