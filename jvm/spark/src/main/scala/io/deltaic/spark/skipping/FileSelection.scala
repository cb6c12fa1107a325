package io.deltaic.spark.skipping

import java.util.Arrays

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression}

/**
 * Which files a query has to read.
 *
 * @param files ordinals, ascending
 * @param totalFiles how many there were to choose from
 * @param filesAfterPartitions how many of them partition values alone have left
 * @param undecided those of `files` on which a filter that partition values should decide failed,
 *   because the log holds a value that cannot be read. A scan that lets Spark drop the filters it
 *   has decided ([[FileSelection.split]]) must refuse to read them.
 */
final case class FileSelection(
    files: Array[Int],
    totalFiles: Int,
    filesAfterPartitions: Int,
    undecided: Array[Int]
) {
  def skippedByPartitions: Int = totalFiles - filesAfterPartitions
  def skippedByStats: Int = filesAfterPartitions - files.length
}

/**
 * @param decided filters that hold of every row of the files they select, and need not be evaluated
 *   again
 * @param remaining the others: they may have helped to select files, but say nothing of all rows
 */
final case class FilterSplit(decided: Seq[Expression], remaining: Seq[Expression])

object FileSelection {

  /** An error costs a hundred answers: a filter that fails this often is asked no further. */
  private val FailuresToGiveUp = 1000

  /**
   * The files that may hold a row which satisfies all `filters`. A filter that cannot be decided,
   * does not concern files or fails leaves a file in. Filters that may fail come after those that
   * cannot, and see fewer files.
   */
  def select(columns: FileStatsColumns, filters: Seq[Expression]): FileSelection = {
    val schema = columns.schema
    val (onPartitions, onRows) =
      filters.flatMap(conjuncts).partition(PartitionFilter.matches(_, schema))
    val (sure, mayFail) = onPartitions.partition(PartitionFilter.neverFails)
    val all = Array.range(0, columns.size)
    val bySure = keep(SkippingPredicate.of(sure, schema), columns, all, Int.MaxValue)
    val byPartition =
      keep(SkippingPredicate.of(mayFail, schema), columns, bySure.files, FailuresToGiveUp)
    val byStats =
      keep(SkippingPredicate.of(onRows, schema), columns, byPartition.files, FailuresToGiveUp)
    val undecided = bySure.failed.filter(i => Arrays.binarySearch(byStats.files, i) >= 0)
    FileSelection(byStats.files, columns.size, byPartition.files.length, undecided)
  }

  /**
   * Which filters [[select]] decides for good: those on partition values alone that no value can
   * make fail.
   */
  def split(filters: Seq[Expression], schema: SkippingSchema): FilterSplit = {
    val (decided, remaining) =
      filters.partition(f => PartitionFilter.matches(f, schema) && PartitionFilter.neverFails(f))
    FilterSplit(decided, remaining)
  }

  /**
   * Those of `files` of which every row satisfies all `conditions`, as far as their statistics prove it.
   * It is the choice of files for the other rows, and as sound.
   */
  def whole(
      columns: FileStatsColumns,
      files: Array[Int],
      conditions: Seq[Expression]
  ): Array[Int] = {
    val others = SkippingPredicate.of(Seq(OtherRows.of(conditions, columns.schema)), columns.schema)
    if (others.keepsAll) Array.emptyIntArray
    else files.diff(keep(others, columns, files, FailuresToGiveUp).files)
  }

  /** Whether knowing something of the column's values can leave out files. */
  def canSkipBy(column: Attribute, schema: SkippingSchema): Boolean =
    schema.partitionColumn(column).isDefined ||
    schema.leafColumn(column).exists(StoredBound.of(_).isDefined)

  private def conjuncts(filter: Expression): Seq[Expression] = filter match {
    case And(l, r) => conjuncts(l) ++ conjuncts(r)
    case other => Seq(other)
  }

  private case class Kept(files: Array[Int], failed: Array[Int])

  /** @param failures after so many the remaining files are kept without being looked at */
  private def keep(
      predicate: SkippingPredicate,
      columns: FileStatsColumns,
      files: Array[Int],
      failures: Int
  ): Kept =
    if (predicate.keepsAll || files.isEmpty) Kept(files, Array.emptyIntArray)
    else {
      val row = columns.row(predicate.fields.map(_._1), files)
      val mayMatch = predicate.evaluator(files.length)
      val kept = Array.newBuilder[Int]
      val failed = Array.newBuilder[Int]
      files.foreach { i =>
        row.file = i
        val keeps =
          try failed.length >= failures || mayMatch.eval(row)
          catch {
            case NonFatal(_) =>
              failed += i
              true
          }
        if (keeps) kept += i
      }
      Kept(kept.result(), failed.result())
    }
}
