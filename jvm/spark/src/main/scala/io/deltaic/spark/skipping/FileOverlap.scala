package io.deltaic.spark.skipping

import scala.util.Random
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.util.TypeUtils

import io.deltaic.spark.schema.SkippingSchema

/**
 * How selective the bounds of a column are: the share of pairs of files whose ranges overlap. It is
 * 0 if the table is sorted by the column, and 1 if each file has values from the whole range. It
 * approximates the share of files that a single key selects. It is measured on a sample, so that it
 * takes a few milliseconds for a table of any size.
 */
private[spark] object FileOverlap {

  private val SampledFiles = 100

  /** A column is worth a subquery only if a key skips at least about two thirds of the files. */
  private val MaxOverlap = 1.0 / 3

  /** Evenly distributed file ordinals, always the same for the same number of files. */
  def sample(numFiles: Int): IndexedSeq[Int] =
    if (numFiles <= SampledFiles) 0 until numFiles
    else {
      // Random within runs of equal length: with a fixed stride, each sampled file could be the
      // first one of a sorted write.
      val random = new Random(numFiles)
      val run = numFiles.toDouble / SampledFiles
      (0 until SampledFiles).map(i => ((i + random.nextDouble()) * run).toInt.min(numFiles - 1))
    }

  /** The overlap of each column that can be used to skip files. A file without bounds overlaps with all files. */
  def of(columns: FileStatsColumns, of: Seq[Attribute]): Map[Attribute, Double] = {
    val fields = of.flatMap { column =>
      boundsOf(column, columns.schema).map { case (lower, upper) => (column, lower, upper) }
    }
    val read = fields.flatMap { case (_, lower, upper) => Seq(lower, upper) }.distinct
    val ordinal = read.zipWithIndex.toMap
    lazy val row = columns.row(read, Array.range(0, columns.size))
    val found = fields.map { case (column, lower, upper) =>
      val overlap =
        try {
          val ranges = Array.tabulate(columns.size) { file =>
            row.file = file
            (value(row, ordinal(lower), lower), value(row, ordinal(upper), upper))
          }
          overlapping(ranges, TypeUtils.getInterpretedOrdering(lower.dataType))
        } catch {
          // A partition value that cannot be parsed; reading the file reports it.
          case NonFatal(_) => 1.0
        }
      column -> overlap
    }
    of.map(_ -> 1.0).toMap ++ found
  }

  /** The least and the greatest value that files may have in a column of the data; none if one has no bounds. */
  def range(columns: FileStatsColumns, column: Expression): Option[(Any, Any)] =
    leafBounds(column, columns.schema).flatMap { case (lower, upper) =>
      val row = columns.row(Seq(lower, upper), Array.range(0, columns.size))
      val ranges = (0 until columns.size).map { file =>
        row.file = file
        (value(row, 0, lower), value(row, 1, upper))
      }
      val ordering = TypeUtils.getInterpretedOrdering(lower.dataType)
      Option.when(ranges.nonEmpty && !ranges.exists { case (min, max) =>
        min == null || max == null
      }) {
        (ranges.map(_._1).min(ordering), ranges.map(_._2).max(ordering))
      }
    }

  /** Partition values identify the files of a key exactly, so two distinct values are enough. */
  def isSelective(column: Attribute, schema: SkippingSchema, overlap: Double): Boolean =
    if (schema.partitionColumn(column).isDefined) overlap < 1.0 else overlap <= MaxOverlap

  /** Equal for columns with the same statistics. */
  def key(column: Attribute, schema: SkippingSchema): Any =
    schema.partitionColumn(column).orElse(schema.leafColumn(column))

  private def boundsOf(column: Attribute, schema: SkippingSchema): Option[(FileField, FileField)] =
    schema.partitionColumn(column)
      .map(p => (FileField.Partition(p): FileField, FileField.Partition(p): FileField))
      .orElse(leafBounds(column, schema))

  private def leafBounds(
      column: Expression,
      schema: SkippingSchema
  ): Option[(FileField, FileField)] =
    schema.leafColumn(column).filter(StoredBound.of(_).isDefined)
      .map(leaf => (FileField.Min(leaf), FileField.Max(leaf)))

  private def value(row: FileRow, ordinal: Int, field: FileField): Any =
    if (row.isNullAt(ordinal)) null else row.get(ordinal, field.dataType)

  private def overlapping(ranges: Array[(Any, Any)], ordering: Ordering[Any]): Double = {
    var pairs = 0L
    var overlaps = 0L
    var i = 0
    while (i < ranges.length) {
      var j = 0
      while (j < i) {
        pairs += 1
        if (mayMeet(ranges(i), ranges(j), ordering)) overlaps += 1
        j += 1
      }
      i += 1
    }
    if (pairs == 0) 1.0 else overlaps.toDouble / pairs
  }

  private def mayMeet(one: (Any, Any), other: (Any, Any), ordering: Ordering[Any]): Boolean =
    reaches(one._2, other._1, ordering) && reaches(other._2, one._1, ordering)

  /** Whether an upper bound is missing or not less than a lower one. */
  private def reaches(upper: Any, lower: Any, ordering: Ordering[Any]): Boolean =
    upper == null || lower == null || ordering.gteq(upper, lower)
}
