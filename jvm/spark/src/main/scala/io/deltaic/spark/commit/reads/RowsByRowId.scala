package io.deltaic.spark.commit.reads

import java.util.Arrays

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.LoggerFactory

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.AddFile
import io.deltaic.spark.commit.{CommitFiles, RowLookup}
import io.deltaic.spark.scan.files.ListedFiles
import io.deltaic.spark.schema.TableSchema

/**
 * Finds rows in other files by their row IDs, which tasks read (Protocol § Row Tracking).
 *
 * @param schema of a table with row tracking
 */
private[spark] final class RowsByRowId(
    spark: SparkSession,
    table: Path,
    version: Long,
    schema: TableSchema
) extends RowLookup {
  import RowsByRowId._

  private val logger = LoggerFactory.getLogger(getClass)

  override def find(
      rows: Seq[RowLookup.RowsOf],
      in: Seq[AddFile]
  ): Option[Map[String, DeletionVector]] =
    try
      Option.when(rows.map(count).sum <= MaxRows)(idsOf(rows)).flatMap { ids =>
        val found =
          if (ids.isEmpty) Map.empty[String, DeletionVector] else positions(in)(Ids(ids)).toMap
        Option.when(ids.length.toLong == found.values.map(_.cardinality).sum)(found)
      }
    catch {
      case NonFatal(e) =>
        logger.warn(s"$table: cannot find the rows that another commit has moved", e)
        None
    }

  private def count(rows: RowLookup.RowsOf): Long = rows.positions match {
    case Some(positions) => positions.cardinality
    case None => CommitFiles.rows(rows.file).getOrElse(0L) - rows.vector.cardinality
  }

  private def idsOf(rows: Seq[RowLookup.RowsOf]): Array[Long] = {
    val selected = rows.map { rows =>
      val positions = rows.positions.getOrElse(rows.vector)
      rows.file.path -> Selected(positions.serialize(), areOthers = rows.positions.isEmpty)
    }.toMap
    val ids = JobInternals.ofPartitions(
      spark,
      "read the row IDs of deleted rows",
      identified(rows.map(_.file))
    ) { (_, found) =>
      val vectors = selected.map { case (path, Selected(bytes, areOthers)) =>
        path -> (DeletionVector.deserialize(bytes) -> areOthers)
      }
      found.filter { row =>
        val (vector, areOthers) = vectors(pathOf(row))
        vector.contains(row.getLong(Position)) != areOthers
      }.map(_.getLong(RowId))
    }.toArray
    Arrays.sort(ids)
    ids
  }

  private def positions(in: Seq[AddFile])(ids: Ids): Seq[(String, DeletionVector)] = {
    val broadcast = spark.sparkContext.broadcast(ids)
    try
      JobInternals.ofPartitions(spark, "find moved rows by their row IDs", identified(in)) {
        (_, rows) =>
          rows.filter(row => Arrays.binarySearch(broadcast.value.sorted, row.getLong(RowId)) >= 0)
            .map(row => pathOf(row) -> row.getLong(Position))
      }.groupMap(_._1)(_._2).toSeq.map { case (path, positions) =>
        path -> DeletionVector.of(positions: _*)
      }
    finally broadcast.destroy()
  }

  /** All rows of some files, deleted ones included, with path, position and row ID. */
  private def identified(files: Seq[AddFile]) = {
    // In a file that is not committed yet, all row IDs are materialized.
    val complete = files.map { file =>
      file.copy(
        deletionVector = None,
        baseRowId = file.baseRowId.orElse(Some(0L)),
        defaultRowCommitVersion = file.defaultRowCommitVersion.orElse(Some(0L))
      )
    }
    val listed = ListedRows
      .identified(spark, ListedFiles(table, version, complete.toIndexedSeq), schema)
    val relation = DataSourceV2Relation.create(listed, None, None, CaseInsensitiveStringMap.empty())
    SessionInternals.run(spark, relation).queryExecution.toRdd
  }
}

private object RowsByRowId {

  /** The IDs of so many rows take 128 MB on the driver and in each executor. */
  private val MaxRows = 1L << 24

  /** The columns of [[ListedRows.identified]]. */
  private val FilePath = 0
  private val Position = 1
  private val RowId = 2

  private def pathOf(row: InternalRow): String = row.getUTF8String(FilePath).toString

  /** @param areOthers whether it is all rows but those in the bitmap */
  private final case class Selected(bitmap: Array[Byte], areOthers: Boolean)

  private final case class Ids(sorted: Array[Long])
}
