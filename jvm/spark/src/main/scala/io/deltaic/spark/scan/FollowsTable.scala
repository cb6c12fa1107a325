package io.deltaic.spark.scan

import org.apache.hadoop.fs.Path

/** A table in a plan, as far as data that was cached from it can become stale. */
private[spark] trait FollowsTable {

  /** The table's root directory. */
  def location: Path

  /** False for a version that was named, which no write changes. */
  def followsNewVersions: Boolean

  /** Whether data cached from this table is older than a commit. */
  def isCachedBefore(commit: LocalCommit): Boolean

  /** Data cached from this table is, from now on, that of `commit`: no data of an older one is cached any more. */
  def refreshedTo(commit: LocalCommit): Unit

  /** Data cached from this table is what was cached from another one, which it replaces in plans. */
  def replaces(older: FollowsTable): Unit
}

/** The versions that data cached from a table stands for, which its copies in plans share. */
private[spark] final class CachedVersions(first: LocalCommit) {
  @volatile private var versions = Set(first.version)
  @volatile private var newest = first

  def add(commit: LocalCommit): Unit = addAll(Set(commit.version), commit)

  /** The same object for both, so that later versions are those of both, too. */
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
