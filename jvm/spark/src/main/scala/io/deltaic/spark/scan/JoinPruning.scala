package io.deltaic.spark.scan

import java.time.ZoneId
import java.util.concurrent.ConcurrentHashMap
import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.AddFile
import io.deltaic.replay.FileTable
import io.deltaic.spark.schema.SkippingSchema
import io.deltaic.spark.skipping.{FileOverlap, SnapshotStatistics}
import io.deltaic.spark.util.SessionSettings

/**
 * Which columns a scan offers Spark as `filterAttributes`.
 *
 * For each of them, Spark adds a subquery with a copy of the other side to every join on it. So a column is
 * offered only if the scan reads many files and many bytes, and if a key of the column is likely to be in
 * few of the files.
 *
 * @param openCostBytes Spark's estimated cost of opening a file
 */
private[scan] final case class JoinPruning(minFiles: Long, minBytes: Long, openCostBytes: Long) {

  /** Whether skipping some of these files is worth its cost. */
  def pays(numFiles: Long, sizeBytes: Long): Boolean =
    numFiles > 1 && numFiles >= minFiles && sizeBytes + numFiles * openCostBytes >= minBytes
}

private[scan] object JoinPruning {
  private val DefaultMinFiles = 8L
  private val DefaultMinBytes = 64L << 20

  def of(spark: SparkSession): JoinPruning = JoinPruning(
    SessionSettings.wholeNumber(spark, "joinPruning.minFiles", DefaultMinFiles),
    SessionSettings.bytes(spark, "joinPruning.minBytes", DefaultMinBytes),
    spark.sessionState.conf.filesOpenCostInBytes
  )

  /**
   * The selective columns: partition columns with more than one value, and other columns whose
   * bounds overlap in few files.
   *
   * @param filesInMemory all files of the table, if they are in memory; their overlaps are cached
   *   as long as the files are
   * @param selected the files of the scan, used in place of all files otherwise
   */
  def selective(
      columns: Seq[Attribute],
      filesInMemory: Option[FileTable],
      selected: IndexedSeq[AddFile],
      schema: SkippingSchema,
      zone: ZoneId
  ): Seq[Attribute] = {
    val overlaps =
      filesInMemory.fold(measured(columns, selected.size, selected(_), schema, zone)) { files =>
        val cached = cachedOf(files)
        val missing =
          columns.filterNot(column => cached.containsKey(FileOverlap.key(column, schema)))
        if (missing.nonEmpty)
          measured(missing, files.size, files.add(_), schema, zone).foreach {
            case (column, overlap) => cached.put(FileOverlap.key(column, schema), overlap)
          }
        columns.map(column => column -> cached.get(FileOverlap.key(column, schema))).toMap
      }
    columns.filter(column => FileOverlap.isSelective(column, schema, overlaps(column)))
  }

  private def measured(
      columns: Seq[Attribute],
      numFiles: Int,
      file: Int => AddFile,
      schema: SkippingSchema,
      zone: ZoneId
  ): Map[Attribute, Double] = {
    val sample = FileOverlap.sample(numFiles).map(file)
    FileOverlap.of(SnapshotStatistics.ofFiles(sample, schema, zone), columns)
  }

  /** The overlap of each column, keyed by the column's name in the log, not in a query. */
  private type Overlaps = ConcurrentHashMap[Any, Double]

  private val cachedByTable = Collections.synchronizedMap(new WeakHashMap[FileTable, Overlaps])

  private def cachedOf(files: FileTable): Overlaps =
    cachedByTable.computeIfAbsent(files, _ => new Overlaps)
}
