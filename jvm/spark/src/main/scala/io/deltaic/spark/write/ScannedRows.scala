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
private[spark] final class ScannedRows(scans: Seq[TableScan], zone: ZoneId) extends ReadSet {

  override def isEmpty: Boolean = scans.isEmpty

  override def wholeTable: Boolean = scans.exists(_.filters.isEmpty)

  override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap { scan =>
      val candidates = SnapshotStatistics.ofFiles(added, scan.schema.skipping, zone)
      FileSelection.select(candidates, scan.filters).files.headOption
    }.nextOption().map(added)

  override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
    scans.headOption.flatMap { scan =>
      removed.find(remove => pathsRead(LogPath.canonical(scan.table, remove.path)))
    }

  /** Writers differ in how they spell a path. */
  private lazy val pathsRead: Set[String] = scans.iterator.flatMap { scan =>
    scan.selectedFiles.iterator.map(file => LogPath.canonical(scan.table, file.path))
  }.toSet
}
