package io.deltaic.spark.commit.reads

import java.util.Arrays

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String
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
 * @param jobs the description of the Spark jobs of a phase of the write
 */
private[spark] final class RowsByRowId(
    spark: SparkSession,
    table: Path,
    version: Long,
    schema: TableSchema,
    jobs: String => String
) extends RowLookup {
  import RowsByRowId._

  private val logger = LoggerFactory.getLogger(getClass)

  override def find(
      rows: Seq[RowLookup.RowsInFile],
      in: Seq[AddFile]
  ): Option[Map[String, DeletionVector]] =
    try {
      val counts = rows.map(count)
      Option.when(counts.forall(_.isDefined))(counts.flatten.sum).filter(_ <= MaxRows).flatMap {
        wanted =>
          // Settings of Spark let readers skip missing or damaged files, whose rows must not get lost.
          Option(idsOf(rows)).filter(_.length.toLong == wanted).flatMap { ids =>
            if (ids.isEmpty) Some(Map.empty[String, DeletionVector]) else positions(in, ids)
          }
      }
    } catch {
      case e: SparkException if e.getCondition == JobCancelled => throw e
      case NonFatal(e) =>
        logger.warn(s"$table: cannot find relocated rows by their row IDs", e)
        None
    }

  private def count(rows: RowLookup.RowsInFile): Option[Long] = rows.positions match {
    case Some(positions) => Some(positions.cardinality)
    case None => CommitFiles.liveRows(rows.file)
  }

  private def idsOf(rows: Seq[RowLookup.RowsInFile]): Array[Long] = {
    val selected = rows.map { rows =>
      val positions = rows.positions.getOrElse(rows.vector)
      rows.file.path -> Selected(positions.serialize(), isNegated = rows.positions.isEmpty)
    }.toMap
    val ids = JobInternals.ofPartitions(
      spark,
      jobs("read the row IDs of deleted rows"),
      identified(rows.map(_.file))
    ) { (_, found) =>
      val ids = Array.newBuilder[Long]
      byPath(found) { path =>
        val Selected(bitmap, isNegated) = selected(path)
        val positions = DeletionVector.deserialize(bitmap)
        row => if (positions.contains(row.getLong(Position)) != isNegated) ids += row.getLong(RowId)
      }
      Iterator.single(ids.result())
    }.toArray.flatten
    Arrays.sort(ids)
    ids
  }

  /** @return none if not each ID is found exactly once */
  private def positions(in: Seq[AddFile], ids: Array[Long]): Option[Map[String, DeletionVector]] = {
    val broadcast = spark.sparkContext.broadcast(Ids(ids))
    val found =
      try
        JobInternals.ofPartitions(
          spark,
          jobs("find relocated rows by their row IDs"),
          identified(in)
        ) {
          (_, rows) =>
            val ofPaths = mutable.Map.empty[String, (DeletionVector, DeletionVector)]
            byPath(rows) { path =>
              val (positions, ordinals) =
                ofPaths.getOrElseUpdate(path, (new DeletionVector, new DeletionVector))
              row => {
                val ordinal = Arrays.binarySearch(broadcast.value.sorted, row.getLong(RowId))
                if (ordinal >= 0) {
                  positions.add(row.getLong(Position))
                  ordinals.add(ordinal.toLong)
                }
              }
            }
            ofPaths.iterator.collect {
              case (path, (positions, ordinals)) if !positions.isEmpty =>
                Found(path, positions.serialize(), ordinals.serialize())
            }
        }
      finally broadcast.destroy()
    val byFile =
      found.groupMapReduce(_.path)(of => DeletionVector.deserialize(of.positions))(_.or(_))
    val all = found.map(of => DeletionVector.deserialize(of.ordinals)).reduceOption(_.or(_))
    val isEachFoundOnce = all.exists(_.cardinality == ids.length.toLong) &&
      byFile.values.map(_.cardinality).sum == ids.length.toLong
    Option.when(isEachFoundOnce)(byFile)
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

  /** The IDs of so many rows take 128 MB on the driver and in each executor, and twice that while tasks return them. */
  private val MaxRows = 1L << 24

  private val JobCancelled = "SPARK_JOB_CANCELLED"

  /** The columns of [[ListedRows.identified]]. */
  private val FilePath = 0
  private val Position = 1
  private val RowId = 2

  /** Rows of a file by its deletion vector; all others if it is negated. */
  private final case class Selected(bitmap: Array[Byte], isNegated: Boolean)

  private final case class Ids(sorted: Array[Long])

  /**
   * Found rows of a file.
   *
   * @param positions in the file, as a bitmap
   * @param ordinals of their IDs in the sorted IDs, as a bitmap
   */
  private final case class Found(path: String, positions: Array[Byte], ordinals: Array[Byte])

  /** Passes each row to what `of` returns for its file; rows of a file follow each other. */
  private def byPath(rows: Iterator[InternalRow])(of: String => InternalRow => Unit): Unit = {
    var path: UTF8String = null
    var visit: InternalRow => Unit = null
    rows.foreach { row =>
      val ofRow = row.getUTF8String(FilePath)
      if (ofRow != path) {
        path = ofRow.clone()
        visit = of(path.toString)
      }
      visit(row)
    }
  }
}
