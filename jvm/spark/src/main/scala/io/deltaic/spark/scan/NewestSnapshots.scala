package io.deltaic.spark.scan

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.catalog.Table

import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * The newest snapshot of each table that a query reads, looked up when it is first asked for: all scans of
 * the query agree on it, whatever is committed while they are planned.
 */
private[spark] final class NewestSnapshots {
  private val known = mutable.Map.empty[Path, Snapshot]
  private val loaded = mutable.Map.empty[Path, LoadedSnapshot]

  def of(log: DeltaLog): Snapshot = synchronized(known.getOrElseUpdate(log.table, log.latest()))

  /** A snapshot that Spark has just loaded for the query; of several under different names, the newest is meant. */
  def load(log: DeltaLog, snapshot: LoadedSnapshot): Unit = synchronized {
    if (loaded.get(log.table).forall(other => snapshot.commit.isNewerThan(other.commit)))
      loaded(log.table) = snapshot
  }

  /** The loaded snapshot, unless this process has committed since: `cache()` plans what is executed much later. */
  def ofLoaded(log: DeltaLog): Snapshot = synchronized {
    known.getOrElseUpdate(
      log.table,
      loaded.get(log.table).filterNot(_.isOvertaken(log)).fold(log.latest())(_.snapshot)
    )
  }
}

/** @param commit the snapshot's, as if this process had made it */
private[spark] final case class LoadedSnapshot(snapshot: Snapshot, commit: LocalCommit) {
  def isOvertaken(log: DeltaLog): Boolean = LocalCommits.of(log.table).isNewerThan(commit)
}

/** A table in a plan whose scans, left to themselves, could read different versions in one query. */
private[spark] trait ReadsNewest extends Table {

  /**
   * The same table for one query, or, with none, as a DataFrame has it. Neither is equal to the other: of what is
   * equal, Spark keeps the old. Two for queries are, if cached data that is the one's is the other's.
   */
  def agreeingOn(newest: Option[NewestSnapshots]): Table
}
