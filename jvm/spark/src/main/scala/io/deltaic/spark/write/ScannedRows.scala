package io.deltaic.spark.write

import java.time.ZoneId

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionShims
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.spark.bridge.ReadSet
import io.deltaic.spark.scan.{ListedFiles, TableScan}
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * What scans of one table have read: the files they chose, and any row that their filters let through.
 *
 * @param zone of the session, which reads timestamps in partition values
 * @param rowsAlone whether a row that was read and left alone is as good as one that is not there
 * @param matches which of the rows matter, of those that the filters let through
 */
private[spark] final class ScannedRows(
    spark: SparkSession,
    scans: Seq[TableScan],
    zone: ZoneId,
    rowsAlone: Boolean = false,
    matches: Option[JoinMatches] = None
) extends ReadSet {

  private val logger = LoggerFactory.getLogger(getClass)

  override def isEmpty: Boolean = scans.isEmpty

  override def wholeTable: Boolean = scans.exists(_.filters.isEmpty)

  override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap(matching(_, added).headOption).nextOption()

  /** A look at the rows takes less than to run the whole statement again, which would read them, too. */
  override def firstHolding(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap { scan =>
      val candidates = matching(scan, added)
      candidates.headOption.filter(_ => holdsRow(scan, candidates))
    }.nextOption()

  private def matching(scan: TableScan, added: Seq[AddFile]): Seq[AddFile] = {
    val candidates = SnapshotStatistics.ofFiles(added, scan.schema.skipping, zone)
    val asked = conditions(scan)
    if (asked.contains(Literal.FalseLiteral)) Nil
    else FileSelection.select(candidates, asked).files.toSeq.map(added)
  }

  /** What holds of all rows that matter. */
  private def conditions(scan: TableScan): Seq[Expression] =
    scan.filters ++ matches.toSeq.flatMap(_.conditions)

  /** Whether there is a row that the scan would have found; so it is taken to be where nothing can be found out. */
  private def holdsRow(scan: TableScan, files: Seq[AddFile]): Boolean = {
    val listed = ListedFiles(scan.table, scan.version, files.toIndexedSeq)
    val rows = new ListedRows(spark, listed, scan.schema)
    val relation = DataSourceV2Relation.create(rows, None, None, CaseInsensitiveStringMap.empty())
    val passing = filtered(scan, relation)
    val found = matches.flatMap(_.among(scan, passing.getOrElse(relation))).orElse(passing)
    try found.forall(!SessionShims.run(spark, _).isEmpty)
    catch {
      case NonFatal(e) =>
        logger.warn(s"${scan.table}: cannot look at rows that another commit has added", e)
        true
    }
  }

  private def filtered(scan: TableScan, rows: DataSourceV2Relation): Option[LogicalPlan] = {
    val byName = rows.output.map(column => column.name -> column).toMap
    conditions(scan).reduceOption(And).map { condition =>
      Filter(
        condition.transformUp { case column: AttributeReference => byName(column.name) },
        rows
      )
    }
  }

  override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
    scans.headOption.filterNot(_ => rowsAlone).flatMap { scan =>
      removed.find(remove => pathsRead(LogPath.canonical(scan.table, remove.path)))
    }

  /** Writers differ in how they spell a path. */
  private lazy val pathsRead: Set[String] = scans.iterator.flatMap { scan =>
    scan.selectedFiles.iterator.map(file => LogPath.canonical(scan.table, file.path))
  }.toSet
}
