package io.deltaic.spark.skipping

import io.deltaic.spark.schema.SkippingSchema

/**
 * The partition values and statistics of some files, by the columns of a schema.
 *
 * The files are divided into parts, each of which caches its decoded values ([[DecodedStats]]). A
 * newer snapshot shares most of its parts with the previous one, so it decodes only new parts.
 */
final class FileStatsColumns private[skipping] (
    decoded: IndexedSeq[DecodedStats],
    parts: FileParts,
    val schema: SkippingSchema
) {

  /** For files that form a single part. */
  def this(
      source: FileStatsSource,
      schema: SkippingSchema,
      parsePartitionValue: PartitionValueParser
  ) = this(
    Vector(new DecodedStats(source, parsePartitionValue)),
    FileParts.one(source.size),
    schema
  )

  val size: Int = parts.size

  /**
   * The number of records in the data file, deleted ones included; None if the statistics lack it.
   */
  def numRecords(i: Int): Option[Long] = inPart(i)(_.numRecords(_))

  /**
   * Whether bounds are values of the file, not only limits. Data skipping needs only limits, but
   * computing MIN or MAX from statistics needs values. If the statistics do not specify it, bounds
   * are tight unless the file has a deletion vector.
   */
  def tightBounds(i: Int): Boolean = inPart(i)(_.tightBounds(_))

  private def inPart[A](i: Int)(ask: (DecodedStats, Int) => A): A = {
    val ordinal = parts.ordinal(i)
    val part = parts.partOf(ordinal)
    ask(decoded(part), ordinal - parts.start(part))
  }

  /** A row whose columns are `fields`. Statistics are decoded only for `files`. */
  private[skipping] def row(fields: Seq[FileField], files: Array[Int]): FileRow = {
    val columns = new Array[Array[FileColumn]](decoded.size)
    parts.split(files).foreach { case (part, rows) =>
      columns(part) = decoded(part).columns(fields, rows)
    }
    new FileRow(parts, columns(_))
  }
}

/**
 * The division of files into consecutive parts.
 *
 * @param starts the ordinal of the first row of each part, ascending
 * @param ends the ordinal after its last one
 * @param ordinals of each file, over the rows of all parts; null if these are the numbers of the files themselves
 */
final private[skipping] class FileParts(
    val size: Int,
    starts: Array[Int],
    ends: Array[Int],
    ordinals: Array[Int]
) {
  def ordinal(file: Int): Int = if (ordinals == null) file else ordinals(file)

  def start(part: Int): Int = starts(part)

  def contains(part: Int, ordinal: Int): Boolean =
    part >= 0 && ordinal >= starts(part) && ordinal < ends(part)

  def partOf(ordinal: Int): Int = {
    val found = java.util.Arrays.binarySearch(starts, ordinal)
    if (found < 0) -found - 2 else found
  }

  /** The rows of these files by part. */
  def split(files: Array[Int]): Seq[(Int, Array[Int])] =
    if (starts.length == 1 && ordinals == null) Seq(0 -> files)
    else {
      val rows = starts.map(_ => Array.newBuilder[Int])
      var part = -1
      files.foreach { file =>
        val o = ordinal(file)
        if (!contains(part, o)) part = partOf(o)
        rows(part) += o - starts(part)
      }
      rows.toVector.map(_.result()).zipWithIndex.collect {
        case (some, p) if some.nonEmpty => p -> some
      }
    }
}

private[skipping] object FileParts {
  def one(size: Int): FileParts = new FileParts(size, Array(0), Array(size), null)
}
