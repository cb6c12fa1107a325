package io.deltaic.spark.scan.files

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.catalog.Table

import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * The newest snapshot of each table that a query reads, loaded on first use. All scans of the query
 * read that version, even if other commits follow while they are planned.
 */
private[spark] final class QuerySnapshots {
  private val pinned = mutable.Map.empty[Path, Snapshot]
  private val loaded = mutable.Map.empty[Path, LoadedSnapshot]

  def of(log: DeltaLog): Snapshot = synchronized(pinned.getOrElseUpdate(log.table, log.latest()))

  /**
   * Registers a snapshot that Spark has just loaded for the query; if it loads several under different names, the
   * newest is used.
   */
  def load(log: DeltaLog, snapshot: LoadedSnapshot): Unit = synchronized {
    if (loaded.get(log.table).forall(other => snapshot.commit.isNewerThan(other.commit)))
      loaded(log.table) = snapshot
  }

  /**
   * The loaded snapshot, unless this process has committed since: a plan made by `cache()` may be executed much
   * later.
   */
  def ofLoaded(log: DeltaLog): Snapshot = synchronized {
    pinned.getOrElseUpdate(
      log.table,
      loaded.get(log.table).filterNot(_.isSuperseded(log)).fold(log.latest())(_.snapshot)
    )
  }
}

/** @param commit the snapshot's, as if this process had made it */
private[spark] final case class LoadedSnapshot(snapshot: Snapshot, commit: LocalCommit) {
  def isSuperseded(log: DeltaLog): Boolean = LocalCommits.of(log.table).isNewerThan(commit)
}

private[spark] object LoadedSnapshot {

  /** A snapshot that is loaded now. */
  def of(log: DeltaLog, snapshot: Snapshot): LoadedSnapshot =
    LoadedSnapshot(snapshot, LocalCommits.at(log.table, snapshot.version))
}

/** A table in a plan whose scans could otherwise read different versions in one query. */
private[spark] trait ReadsNewest extends Table {

  /**
   * The same table with the snapshots of one query, or, with none, as in a DataFrame. The two are
   * not equal: Spark would keep the old one. The tables of two queries are equal if they can use
   * the same cached data.
   */
  def pinnedTo(newest: Option[QuerySnapshots]): Table
}
