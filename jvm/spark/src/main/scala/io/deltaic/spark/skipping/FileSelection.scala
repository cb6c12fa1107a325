package io.deltaic.spark.skipping

import java.util.Arrays

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression}

import io.deltaic.spark.schema.SkippingSchema

/**
 * The files that a query reads.
 *
 * @param files ordinals, ascending
 * @param totalFiles the number of candidate files
 * @param ofPartitions the files that filters on partition values alone select
 * @param unevaluated those of `files` on which a filter on partition values failed, because the log
 *   contains a value that cannot be parsed. A scan that lets Spark drop fully evaluated filters
 *   ([[FileSelection.split]]) must not read them.
 */
final case class FileSelection(
    files: Array[Int],
    totalFiles: Int,
    ofPartitions: Array[Int],
    unevaluated: Array[Int]
) {
  def skippedByPartitions: Int = totalFiles - ofPartitions.length
  def skippedByStats: Int = ofPartitions.length - files.length
}

/**
 * @param fullyEvaluated filters that are true for every row of the files they select, and need not be evaluated again
 * @param remaining partially evaluated filters: they may have helped to select files, but must
 *   still be evaluated for each row
 */
final case class FilterSplit(fullyEvaluated: Seq[Expression], remaining: Seq[Expression])

object FileSelection {

  /** An error costs as much as a hundred evaluations: a filter that fails this often is no longer evaluated. */
  private val FailuresToGiveUp = 1000

  /**
   * The files that may contain a row which satisfies all `filters`. A filter that cannot be
   * evaluated on files, or fails, does not skip a file. Filters that may fail are evaluated after
   * those that cannot, on fewer files.
   */
  def select(columns: FileStatsColumns, filters: Seq[Expression]): FileSelection = {
    val schema = columns.schema
    val (onPartitions, onRows) =
      filters.flatMap(conjuncts).partition(PartitionFilter.matches(_, schema))
    val (sure, mayFail) = onPartitions.partition(PartitionFilter.neverFails)
    val all = Array.range(0, columns.size)
    val bySure = retain(SkippingPredicate.of(sure, schema), columns, all, Int.MaxValue)
    val byPartition =
      retain(SkippingPredicate.of(mayFail, schema), columns, bySure.files, FailuresToGiveUp)
    val byStats =
      retain(SkippingPredicate.of(onRows, schema), columns, byPartition.files, FailuresToGiveUp)
    val unevaluated = bySure.failed.filter(i => Arrays.binarySearch(byStats.files, i) >= 0)
    FileSelection(byStats.files, columns.size, byPartition.files, unevaluated)
  }

  /**
   * Which filters [[select]] fully evaluates: those on partition values alone that cannot fail for any value.
   */
  def split(filters: Seq[Expression], schema: SkippingSchema): FilterSplit = {
    val (fullyEvaluated, remaining) =
      filters.partition(f => PartitionFilter.matches(f, schema) && PartitionFilter.neverFails(f))
    FilterSplit(fullyEvaluated, remaining)
  }

  /**
   * Those of `files` of which every row satisfies all `conditions`, as far as their statistics prove it.
   * It skips files for the negated conditions, with the same soundness.
   */
  def fullySelected(
      columns: FileStatsColumns,
      files: Array[Int],
      conditions: Seq[Expression]
  ): Array[Int] = {
    val others =
      SkippingPredicate.of(Seq(NegatedPredicate.of(conditions, columns.schema)), columns.schema)
    if (others.selectsAll) Array.emptyIntArray
    else files.diff(retain(others, columns, files, FailuresToGiveUp).files)
  }

  /** Whether a filter on the column's values can skip files. */
  def canSkipBy(column: Attribute, schema: SkippingSchema): Boolean =
    schema.partitionColumn(column).isDefined ||
    schema.leafColumn(column).exists(StoredBound.of(_).isDefined)

  private def conjuncts(filter: Expression): Seq[Expression] = filter match {
    case And(l, r) => conjuncts(l) ++ conjuncts(r)
    case other => Seq(other)
  }

  private case class Retained(files: Array[Int], failed: Array[Int])

  /** @param failures after this many failures the remaining files are selected without evaluation */
  private def retain(
      predicate: SkippingPredicate,
      columns: FileStatsColumns,
      files: Array[Int],
      failures: Int
  ): Retained =
    if (predicate.selectsAll || files.isEmpty) Retained(files, Array.emptyIntArray)
    else {
      val row = columns.row(predicate.fields.map(_._1), files)
      val mayMatch = predicate.evaluator(files.length)
      val retained = Array.newBuilder[Int]
      val failed = Array.newBuilder[Int]
      files.foreach { i =>
        row.file = i
        val matches =
          try failed.length >= failures || mayMatch.eval(row)
          catch {
            case NonFatal(_) =>
              failed += i
              true
          }
        if (matches) retained += i
      }
      Retained(retained.result(), failed.result())
    }
}
