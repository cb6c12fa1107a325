package io.deltaic.spark.write

import java.time.ZoneId

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, Repeats, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.spark.bridge.{ReadSet, TakenRows}
import io.deltaic.spark.changes._
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
  import ScannedRows._

  private val logger = LoggerFactory.getLogger(getClass)

  override def isEmpty: Boolean = scans.isEmpty

  override def wholeTable: Boolean = scans.exists(_.filters.isEmpty)

  override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap(scan => matching(scan, added, conditions(scan)).headOption).nextOption()

  /** A look at the rows takes less than to run the whole statement again, which would read them, too. */
  override def firstHolding(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap { scan =>
      val asked = conditions(scan)
      val candidates = matching(scan, added, asked)
      candidates.headOption.filter(_ =>
        unlessUnknown(scan) {
          val listed = ListedFiles(scan.table, scan.version, candidates.toIndexedSeq)
          holdsRow(scan, ListedRows.live(spark, listed, scan.schema), asked, matches)
        }
      )
    }.nextOption()

  private def matching(
      scan: TableScan,
      files: Seq[AddFile],
      asked: Seq[Expression]
  ): Seq[AddFile] = {
    val candidates = SnapshotStatistics.ofFiles(files, scan.schema.skipping, zone)
    if (asked.contains(Literal.FalseLiteral)) Nil
    else FileSelection.select(candidates, asked).files.toSeq.map(files)
  }

  /** What holds of all rows that matter. */
  private def conditions(scan: TableScan): Seq[Expression] =
    scan.filters ++ matches.toSeq.flatMap(_.conditions)

  /** Whether there is a row that the scan would have found. */
  private def holdsRow(
      scan: TableScan,
      rows: ListedRows,
      asked: Seq[Expression],
      join: Option[JoinMatches]
  ): Boolean = {
    val relation = DataSourceV2Relation.create(rows, None, None, CaseInsensitiveStringMap.empty())
    val passing = filtered(asked, relation)
    val found = join.flatMap(_.among(scan, passing.getOrElse(relation))).orElse(passing)
    JobShims.calledAs(spark, "look for rows that a conflicting commit added") {
      found.forall(!SessionShims.run(spark, _).isEmpty)
    }
  }

  /** A row is taken to be there where nothing can be found out. */
  private def unlessUnknown(scan: TableScan)(isThere: => Boolean): Boolean =
    try isThere
    catch {
      case NonFatal(e) =>
        logger.warn(s"${scan.table}: cannot look at rows that another commit has changed", e)
        true
    }

  private def filtered(asked: Seq[Expression], rows: DataSourceV2Relation): Option[LogicalPlan] = {
    val byName = rows.output.map(column => column.name -> column).toMap
    asked.reduceOption(And).map { condition =>
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

  /**
   * Rows that are chosen one by one, by a join, matter if it finds them. What has become of others, in an
   * aggregate maybe, they do not tell.
   */
  override def firstEnded(taken: Seq[TakenRows]): Option[RemoveFile] =
    if (rowsAlone || matches.isEmpty) firstRead(taken.map(_.remove))
    else
      scans.iterator.flatMap { scan =>
        val files = scan.selectedFiles.iterator
          .map(file => LogPath.canonical(scan.table, file.path) -> file).toMap
        val ended = taken.flatMap { rows =>
          val read = files.get(LogPath.canonical(scan.table, rows.remove.path))
          read.flatMap(file => rows.from(file).map(EndedPart(rows.remove, file, _)))
        }
        ended.headOption.filter(_ => unlessUnknown(scan)(foundAny(scan, ended))).map(_.remove)
      }.nextOption()

  /**
   * Whether the scan has found one of these rows. What is asked of them once more has to have the answer that
   * the statement got, so conditions that could have another one are left out.
   */
  private def foundAny(scan: TableScan, ended: Seq[EndedPart]): Boolean = {
    val asked = conditions(scan).filter(Repeats.expression)
    val candidates = matching(scan, ended.map(_.file), asked).toSet
    // Several commits may have deleted rows of one file: by its number, each part is read on its own.
    val changes = ended.filter(part => candidates(part.file)).zipWithIndex.map { case (part, n) =>
      val file = part.file.copy(deletionVector = None)
      val change = FileChange(file, Some(ChangeColumns.Delete), part.rows)
      CommittedChange(change, version = n.toLong, timestampMs = 0L)
    }
    changes.nonEmpty && {
      val listed = ListedChanges(scan.table, scan.version, changes.toIndexedSeq)
      val rows = ListedRows.changed(spark, listed, scan.schema)
      holdsRow(scan, rows, asked, matches.filter(_.repeats))
    }
  }

  /** Writers differ in how they spell a path. */
  private lazy val pathsRead: Set[String] = scans.iterator.flatMap { scan =>
    scan.selectedFiles.iterator.map(file => LogPath.canonical(scan.table, file.path))
  }.toSet
}

private object ScannedRows {

  /**
   * Rows of a file that others have ended.
   *
   * @param file as it was read
   */
  final case class EndedPart(remove: RemoveFile, file: AddFile, rows: RowSelection)
}
