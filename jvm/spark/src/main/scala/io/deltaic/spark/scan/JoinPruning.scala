package io.deltaic.spark.scan

import java.time.ZoneId
import java.util.concurrent.ConcurrentHashMap
import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.AddFile
import io.deltaic.replay.FileTable
import io.deltaic.spark.SessionSettings
import io.deltaic.spark.skipping.{FileOverlap, SkippingSchema, SnapshotStatistics}

/**
 * Which columns a scan offers Spark as `filterAttributes`.
 *
 * For each of them, Spark puts a subquery with a copy of the other side under every join on it. So a column is offered only if
 * the scan reads many files and many bytes, and if a key of the column is likely to be in few of the files.
 *
 * @param openCostBytes what Spark takes the opening of a file for
 */
private[scan] final case class JoinPruning(minFiles: Long, minBytes: Long, openCostBytes: Long) {

  /** Whether it pays to leave out some of these files. */
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
   * Those of the columns by which the files can be told apart: partition columns that have more than one value, and others whose
   * bounds overlap in few files.
   *
   * @param known all files of the table, if they are in memory; what is found out of them is kept as long as they are
   * @param selected the files of the scan, which stand for all files otherwise
   */
  def telling(
      columns: Seq[Attribute],
      known: Option[FileTable],
      selected: IndexedSeq[AddFile],
      schema: SkippingSchema,
      zone: ZoneId
  ): Seq[Attribute] = {
    val overlaps =
      known.fold(measured(columns, selected.size, selected(_), schema, zone)) { files =>
        val kept = keptOf(files)
        val missing = columns.filterNot(column => kept.containsKey(FileOverlap.key(column, schema)))
        if (missing.nonEmpty)
          measured(missing, files.size, files.add(_), schema, zone).foreach {
            case (column, overlap) => kept.put(FileOverlap.key(column, schema), overlap)
          }
        columns.map(column => column -> kept.get(FileOverlap.key(column, schema))).toMap
      }
    columns.filter(column => FileOverlap.tellsFilesApart(column, schema, overlaps(column)))
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

  /** The overlap of each column, as the log knows columns, whatever their names are in a query. */
  private type Overlaps = ConcurrentHashMap[Any, Double]

  private val keptByTable = Collections.synchronizedMap(new WeakHashMap[FileTable, Overlaps])

  private def keptOf(files: FileTable): Overlaps =
    keptByTable.computeIfAbsent(files, _ => new Overlaps)
}
