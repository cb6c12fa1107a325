package io.deltaic.spark.write.files

import java.io.StringWriter
import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.time.format.DateTimeFormatter
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}
import java.util.Locale

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator}
import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.{GroupType, MessageType, PrimitiveType}
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types._

/**
 * The statistics of a data file, computed from the footer that its writer still has in memory
 * (Protocol § Per-file Statistics). No row is read.
 *
 * The rule: a bound that cannot be exact is left out, never guessed. The footer in memory has the
 * complete smallest and largest value of each column chunk, so strings are truncated only here.
 */
private[spark] object FileStatistics {

  /** The `stats` of the file's `add` action. */
  def json(
      footer: ParquetMetadata,
      columns: StatisticsColumns,
      values: FooterValues = FooterValues.OfOurWriter
  ): String = {
    val chunks = chunksByColumn(footer)
    val numRecords = footer.getBlocks.asScala.map(_.getRowCount).sum
    val schema = footer.getFileMetaData.getSchema
    val statistics = columns.leaves.map { leaf =>
      if (VoidColumns.isVoid(leaf.dataType)) ofVoid(numRecords)
      else ofLeaf(leaf, schema, chunks, columns.stringPrefixLength, values)
    }
    val out = new StringWriter(256)
    val generator = jsonFactory.createGenerator(out)
    generator.writeStartObject()
    generator.writeNumberField("numRecords", numRecords)
    writeTree(generator, "minValues", columns.roots, i => statistics(i).min)
    writeTree(generator, "maxValues", columns.roots, i => statistics(i).max)
    writeTree(generator, "nullCount", columns.roots, i => statistics(i).nullCount)
    generator.writeBooleanField("tightBounds", true)
    generator.writeEndObject()
    generator.close()
    out.toString
  }

  /** A JSON scalar. */
  private final case class Scalar(text: String, quoted: Boolean)

  private final case class LeafStatistics(
      min: Option[Scalar],
      max: Option[Scalar],
      nullCount: Option[Scalar]
  )

  private def chunksByColumn(footer: ParquetMetadata): Map[Seq[String], Seq[ColumnChunkMetaData]] =
    footer.getBlocks.asScala.toSeq
      .flatMap(_.getColumns.asScala)
      .groupBy(_.getPath.toArray.toSeq)

  private def ofVoid(numRecords: Long): LeafStatistics =
    LeafStatistics(None, None, Some(Scalar(numRecords.toString, quoted = false)))

  private def ofLeaf(
      leaf: StatisticsLeaf,
      schema: MessageType,
      chunksOf: Map[Seq[String], Seq[ColumnChunkMetaData]],
      prefixLength: Int,
      values: FooterValues
  ): LeafStatistics = {
    val descriptor = firstColumn(schema, leaf.path)
    val chunks = descriptor.flatMap(column => chunksOf.get(column.getPath.toSeq)).getOrElse(Nil)
    val nulls = descriptor.flatMap(nullCount(leaf, schema, _, chunks))
    def bound(column: PrimitiveType, value: Any, isMin: Boolean): Option[Scalar] =
      values.bound(leaf.dataType, column, value, isMin)
        .flatMap(boundOf(leaf.dataType, _, isMin, prefixLength))
    val bounds =
      for {
        column <- descriptor.map(_.getPrimitiveType) if hasBounds(leaf.dataType)
        merged <- mergedStatistics(chunks)
      } yield (
        bound(column, merged.genericGetMin, isMin = true),
        bound(column, merged.genericGetMax, isMin = false)
      )
    val (min, max) = bounds.getOrElse((None, None))
    LeafStatistics(min, max, nulls.map(n => Scalar(n.toString, quoted = false)))
  }

  /** The first column of the file at or below a path; arrays, maps and variants have theirs below. */
  private def firstColumn(schema: MessageType, path: Seq[String]): Option[ColumnDescriptor] = {
    @tailrec def descend(
        group: GroupType,
        rest: Seq[String],
        taken: Seq[String]
    ): Option[Seq[String]] =
      if (rest.nonEmpty && !group.containsField(rest.head)) None
      else {
        val field = if (rest.nonEmpty) group.getType(rest.head) else group.getType(0)
        val reached = taken :+ field.getName
        if (!field.isPrimitive) descend(field.asGroupType, rest.drop(1), reached)
        else Option.when(rest.length <= 1)(reached)
      }
    descend(schema, path, Nil).map(column => schema.getColumnDescription(column.toArray))
  }

  /**
   * The number of rows in which the column is null. A column below a null struct is null.
   *
   * A plain column has a null count in the footer. Below a repeated column one row has many values. A row with
   * a null array or map has a definition level lower than the column's own, and is in the histogram
   * exactly once, while an empty array and each element have that level or a deeper one.
   */
  private def nullCount(
      leaf: StatisticsLeaf,
      schema: MessageType,
      column: ColumnDescriptor,
      chunks: Seq[ColumnChunkMetaData]
  ): Option[Long] = {
    val level = schema.getMaxDefinitionLevel(leaf.path: _*)
    if (level == 0) Some(0L)
    else if (level == column.getMaxDefinitionLevel && column.getMaxRepetitionLevel == 0) {
      sumIfAll(chunks) { chunk =>
        Option(chunk.getStatistics).filter(_.isNumNullsSet).map(_.getNumNulls)
      }
    } else {
      sumIfAll(chunks) { chunk =>
        Option(chunk.getSizeStatistics)
          .filter(_.isValid)
          .map(_.getDefinitionLevelHistogram.asScala)
          .filter(_.length == column.getMaxDefinitionLevel + 1)
          .map(_.take(level).map(_.longValue).sum)
      }
    }
  }

  private def sumIfAll(chunks: Seq[ColumnChunkMetaData])(
      count: ColumnChunkMetaData => Option[Long]
  ): Option[Long] =
    chunks.foldLeft(Option(0L))((sum, chunk) => sum.flatMap(s => count(chunk).map(s + _)))

  /** Whether columns of this type have a minimum and a maximum. */
  def hasBounds(dataType: DataType): Boolean = dataType match {
    case string: StringType => SchemaInternals.isBinary(string)
    case _: NumericType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /**
   * The statistics over all row groups; none if all values are null or the statistics of a row group are
   * missing.
   */
  private def mergedStatistics(chunks: Seq[ColumnChunkMetaData]): Option[Statistics[_]] = {
    val areKnown = chunks.forall { chunk =>
      val statistics: Statistics[_] = chunk.getStatistics
      statistics != null && statistics.isNumNullsSet &&
      (statistics.hasNonNullValue || statistics.getNumNulls == chunk.getValueCount)
    }
    val withValues = chunks.map(_.getStatistics).filter(s => s != null && s.hasNonNullValue)
    if (!areKnown || withValues.isEmpty) None
    else {
      val merged: Statistics[_] = withValues.head.copy()
      withValues.tail.foreach(merged.mergeStatistics(_))
      Some(merged)
    }
  }

  private def boundOf(
      dataType: DataType,
      value: Any,
      isMin: Boolean,
      prefixLength: Int
  ): Option[Scalar] = dataType match {
    case FloatType => floating(value.asInstanceOf[Float].toDouble, value.toString, isMin)
    case DoubleType => floating(value.asInstanceOf[Double], value.toString, isMin)
    case decimal: DecimalType => Some(Scalar(decimalText(value, decimal.scale), quoted = false))
    case _: NumericType => Some(Scalar(value.toString, quoted = false))
    case DateType =>
      val date = LocalDate.ofEpochDay(value.asInstanceOf[Int].toLong)
      Option.when(hasFourDigitYear(date.getYear))(Scalar(date.toString, quoted = true))
    case TimestampType => timestamp(value.asInstanceOf[Long], instantMillis)
    case TimestampNTZType => timestamp(value.asInstanceOf[Long], localMillis)
    case _: StringType =>
      val bytes = value.asInstanceOf[Binary].getBytes
      val text =
        if (isMin) StringBounds.lower(bytes, prefixLength)
        else StringBounds.upper(bytes, prefixLength)
      text.map(Scalar(_, quoted = true))
    case _ => None
  }

  /**
   * Parquet's writer orders NaN last, as Spark does, so that NaN is the largest value, and JSON
   * has no number for it. Some readers treat the two zeros as equal and others order them: the
   * bounds enclose both.
   */
  private def floating(value: Double, text: String, isMin: Boolean): Option[Scalar] =
    if (value.isNaN || value.isInfinite) None
    else if (value == 0.0) Some(Scalar(if (isMin) "-0.0" else "0.0", quoted = false))
    else Some(Scalar(text, quoted = false))

  private def decimalText(value: Any, scale: Int): String = {
    val unscaled = (value: @unchecked) match {
      case int: Int => BigInteger.valueOf(int.toLong)
      case long: Long => BigInteger.valueOf(long)
      case binary: Binary => new BigInteger(binary.getBytes)
    }
    new JBigDecimal(unscaled, scale).toPlainString
  }

  /**
   * Truncated down to milliseconds, the largest value too (Protocol § Per-file Statistics, footnote
   * 1).
   */
  private def timestamp(micros: Long, formatter: DateTimeFormatter): Option[Scalar] = {
    val instant = Instant.ofEpochMilli(Math.floorDiv(micros, 1000L))
    val dateTime = LocalDateTime.ofInstant(instant, ZoneOffset.UTC)
    Option.when(hasFourDigitYear(dateTime.getYear))(
      Scalar(formatter.format(dateTime), quoted = true)
    )
  }

  /** Other years have no format that all readers parse alike. */
  private def hasFourDigitYear(year: Int): Boolean = year >= 1 && year <= 9999

  private def writeTree(
      generator: JsonGenerator,
      name: String,
      nodes: Seq[StatisticsNode],
      valueOf: Int => Option[Scalar]
  ): Unit = {
    generator.writeObjectFieldStart(name)
    nodes.foreach {
      case leaf: StatisticsLeaf =>
        valueOf(leaf.ordinal).foreach { scalar =>
          generator.writeFieldName(leaf.name)
          if (scalar.quoted) generator.writeString(scalar.text)
          else generator.writeNumber(scalar.text)
        }
      case group: StatisticsGroup if hasValue(group, valueOf) =>
        writeTree(generator, group.name, group.children, valueOf)
      case _ =>
    }
    generator.writeEndObject()
  }

  private def hasValue(node: StatisticsNode, valueOf: Int => Option[Scalar]): Boolean = node match {
    case leaf: StatisticsLeaf => valueOf(leaf.ordinal).isDefined
    case group: StatisticsGroup => group.children.exists(hasValue(_, valueOf))
  }

  private val jsonFactory = new JsonFactory()
  private val instantMillis = pattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'")
  private val localMillis = pattern("uuuu-MM-dd'T'HH:mm:ss.SSS")

  private def pattern(text: String): DateTimeFormatter =
    DateTimeFormatter.ofPattern(text, Locale.ROOT)
}
