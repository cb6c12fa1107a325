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

  def of(log: DeltaLog): Snapshot = synchronized(known.getOrElseUpdate(log.table, log.latest()))
}

/** A table in a plan whose scans, left to themselves, each look for the newest version. */
private[spark] trait ReadsNewest extends Table {

  /**
   * The same table for one query, or, with none, as a DataFrame has it. Neither is equal to the other: of what is
   * equal, Spark keeps the old. Two for queries are, if cached data that is the one's is the other's.
   */
  def agreeingOn(newest: Option[NewestSnapshots]): Table
}
