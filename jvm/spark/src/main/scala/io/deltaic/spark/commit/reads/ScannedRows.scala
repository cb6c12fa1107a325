package io.deltaic.spark.commit.reads

import java.time.ZoneId

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.merge.DeterminismCheck
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.spark.changes.{
  ChangeColumns,
  CommittedChange,
  FileChange,
  ListedChanges,
  RowSelection
}
import io.deltaic.spark.commit.{ConcurrentlyDeletedRows, ReadSet}
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.scan.files.ListedFiles
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * What scans of one table have read: the files they selected, and all rows that pass their filters.
 *
 * @param zone of the session, to parse timestamps in partition values
 * @param resultPerRow whether a row that was read and not changed has no effect on the result
 * @param matches which of the rows that pass the filters affect the result
 */
private[spark] final class ScannedRows(
    spark: SparkSession,
    scans: Seq[TableScan],
    zone: ZoneId,
    resultPerRow: Boolean = false,
    matches: Option[MergeReadPredicate] = None
) extends ReadSet {
  import ScannedRows._

  private val logger = LoggerFactory.getLogger(getClass)

  override def isEmpty: Boolean = scans.isEmpty

  override def wholeTable: Boolean = scans.exists(_.filters.isEmpty)

  override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap(scan => matching(scan, added, conditions(scan)).headOption).nextOption()

  /** Reading the rows is cheaper than running the whole statement again, which would read them, too. */
  override def firstAddedByRows(added: Seq[AddFile]): Option[AddFile] =
    scans.iterator.flatMap { scan =>
      val filters = conditions(scan)
      val candidates = matching(scan, added, filters)
      candidates.headOption.filter(_ =>
        unlessUnknown(scan) {
          val listed = ListedFiles(scan.table, scan.version, candidates.toIndexedSeq)
          holdsRow(scan, ListedRows.live(spark, listed, scan.schema), filters, matches)
        }
      )
    }.nextOption()

  private def matching(
      scan: TableScan,
      files: Seq[AddFile],
      filters: Seq[Expression]
  ): Seq[AddFile] = {
    val candidates = SnapshotStatistics.ofFiles(files, scan.schema.skipping, zone)
    if (filters.contains(Literal.FalseLiteral)) Nil
    else FileSelection.select(candidates, filters).files.toSeq.map(files)
  }

  /** Conditions that all rows satisfy that affect the result. */
  private def conditions(scan: TableScan): Seq[Expression] =
    scan.filters ++ matches.toSeq.flatMap(_.conditions)

  /** Whether there is a row that the scan would have read. */
  private def holdsRow(
      scan: TableScan,
      rows: ListedRows,
      filters: Seq[Expression],
      join: Option[MergeReadPredicate]
  ): Boolean = {
    val relation = DataSourceV2Relation.create(rows, None, None, CaseInsensitiveStringMap.empty())
    val passing = filtered(filters, relation)
    val found = join.flatMap(_.restrictTo(scan, passing.getOrElse(relation))).orElse(passing)
    JobInternals.calledAs(spark, "look for rows that a conflicting commit added") {
      found.forall(!SessionInternals.run(spark, _).isEmpty)
    }
  }

  /** True if the rows cannot be read, since a conflict cannot be ruled out. */
  private def unlessUnknown(scan: TableScan)(exists: => Boolean): Boolean =
    try exists
    catch {
      case NonFatal(e) =>
        logger.warn(s"${scan.table}: cannot read rows that another commit has changed", e)
        true
    }

  private def filtered(
      filters: Seq[Expression],
      rows: DataSourceV2Relation
  ): Option[LogicalPlan] = {
    val byName = rows.output.map(column => column.name -> column).toMap
    filters.reduceOption(And).map { condition =>
      Filter(
        condition.transformUp { case column: AttributeReference => byName(column.name) },
        rows
      )
    }
  }

  override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
    scans.headOption.filterNot(_ => resultPerRow).flatMap { scan =>
      removed.find(remove => pathsRead(LogPath.canonical(scan.table, remove.path)))
    }

  /**
   * Deleted rows that a join selects conflict if it matches them. Without a join the effect of a row is not known,
   * for example in an aggregate, and each row that was read conflicts.
   */
  override def firstRemovedByRows(deleted: Seq[ConcurrentlyDeletedRows]): Option[RemoveFile] =
    if (resultPerRow || matches.isEmpty) firstRemovedByStatistics(deleted.map(_.remove))
    else
      scans.iterator.flatMap { scan =>
        val files = scan.selectedFiles.iterator
          .map(file => LogPath.canonical(scan.table, file.path) -> file).toMap
        val parts = deleted.flatMap { rows =>
          val read = files.get(LogPath.canonical(scan.table, rows.remove.path))
          read.flatMap(file => rows.from(file).map(DeletedPart(rows.remove, file, _)))
        }
        parts.headOption.filter(_ => unlessUnknown(scan)(hasRead(scan, parts))).map(_.remove)
      }.nextOption()

  /**
   * Whether the scan has read one of these rows. The conditions are evaluated again and must return the same result
   * as in the statement, so nondeterministic conditions are left out.
   */
  private def hasRead(scan: TableScan, deleted: Seq[DeletedPart]): Boolean = {
    val filters = conditions(scan).filter(DeterminismCheck.expression)
    val candidates = matching(scan, deleted.map(_.file), filters).toSet
    // Several commits may have deleted rows of one file: with different versions, each part is read separately.
    val changes = deleted.filter(part => candidates(part.file)).zipWithIndex.map { case (part, n) =>
      val file = part.file.copy(deletionVector = None)
      val change = FileChange(file, Some(ChangeColumns.Delete), part.rows)
      CommittedChange(change, version = n.toLong, timestampMs = 0L)
    }
    changes.nonEmpty && {
      val listed = ListedChanges(scan.table, scan.version, changes.toIndexedSeq)
      val rows = ListedRows.changed(spark, listed, scan.schema)
      holdsRow(scan, rows, filters, matches.filter(_.isDeterministic))
    }
  }

  /** Writers differ in how they spell a path. */
  private lazy val pathsRead: Set[String] = scans.iterator.flatMap { scan =>
    scan.selectedFiles.iterator.map(file => LogPath.canonical(scan.table, file.path))
  }.toSet
}

private object ScannedRows {

  /**
   * Rows of a file that other commits have deleted.
   *
   * @param file as it was read
   */
  final case class DeletedPart(remove: RemoveFile, file: AddFile, rows: RowSelection)
}
