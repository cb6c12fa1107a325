package io.deltaic.spark.write

import java.time.ZoneId

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.spark.bridge.ReadSet
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * What scans of one table have read: the files they chose, and any row that their filters let through.
 *
 * @param zone of the session, which reads timestamps in partition values
 */
private[spark] final class ScannedRows(scans: => Seq[TableScan], zone: ZoneId) extends ReadSet {

  override def isEmpty: Boolean = scans.isEmpty

  override def wholeTable: Boolean = scans.exists(_.filters.isEmpty)

  override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap { scan =>
      val candidates = SnapshotStatistics.ofFiles(added, scan.schema.skipping, zone)
      FileSelection.select(candidates, scan.filters).files.headOption
    }.nextOption().map(added)

  override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
    removed.find(remove => scans.exists(s => pathsOf(s)(LogPath.canonical(s.table, remove.path))))

  private def pathsOf(scan: TableScan): Set[String] =
    paths.getOrElseUpdate(
      scan,
      scan.selectedFiles.iterator.map(f => LogPath.canonical(scan.table, f.path)).toSet
    )

  /** By identity: scans that read the same need not have been built from the same table object. */
  private val paths = scala.collection.mutable.Map.empty[TableScan, Set[String]]
}
