package io.deltaic.spark.skipping

import scala.util.Random
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.util.TypeUtils

/**
 * How well the bounds of a column tell files apart: the share of pairs of files whose ranges have a value in common. It is 0 if the
 * table is sorted by the column, 1 if each file has values from the whole range, and about the share of files that a single key
 * leaves in. It is measured on a sample, so that a table of any size costs a few milliseconds.
 */
private[spark] object FileOverlap {

  private val SampledFiles = 100

  /** A key of a column leaves out at least about two thirds of the files, or the column is not worth a subquery. */
  private val MaxOverlap = 1.0 / 3

  /** Numbers of files, evenly drawn and always the same. */
  def sample(numFiles: Int): IndexedSeq[Int] =
    if (numFiles <= SampledFiles) 0 until numFiles
    else {
      // By chance within each of as many runs: every so many files may be the first of a sorted write.
      val random = new Random(numFiles)
      val run = numFiles.toDouble / SampledFiles
      (0 until SampledFiles).map(i => ((i + random.nextDouble()) * run).toInt.min(numFiles - 1))
    }

  /** Of each column, by whose values files can be skipped. A file whose bounds are not known overlaps with all. */
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
          // A partition value that cannot be read: whoever reads the file will say so.
          case NonFatal(_) => 1.0
        }
      column -> overlap
    }
    of.map(_ -> 1.0).toMap ++ found
  }

  /** Partition values name the very files of a key, so that two of them are enough. */
  def tellsFilesApart(column: Attribute, schema: SkippingSchema, overlap: Double): Boolean =
    if (schema.partitionColumn(column).isDefined) overlap < 1.0 else overlap <= MaxOverlap

  /** Equal for columns of which the same is known. */
  def key(column: Attribute, schema: SkippingSchema): Any =
    schema.partitionColumn(column).orElse(schema.leafColumn(column))

  private def boundsOf(column: Attribute, schema: SkippingSchema): Option[(FileField, FileField)] =
    schema.partitionColumn(column)
      .map(p => (FileField.Partition(p): FileField, FileField.Partition(p): FileField))
      .orElse(schema.leafColumn(column).filter(StoredBound.of(_).isDefined)
        .map(leaf => (FileField.Min(leaf), FileField.Max(leaf))))

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

  /** Whether an upper bound is not known to be less than a lower one. */
  private def reaches(upper: Any, lower: Any, ordering: Ordering[Any]): Boolean =
    upper == null || lower == null || ordering.gteq(upper, lower)
}
