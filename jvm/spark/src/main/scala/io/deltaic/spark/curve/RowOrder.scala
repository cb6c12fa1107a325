package io.deltaic.spark.curve

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Expression,
  GetStructField,
  Literal,
  Substring
}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.types.{StringType, StructType}

import io.deltaic.protocol.ColumnNames
import io.deltaic.spark.util.Json

/**
 * Orders rows along a curve through the values of columns.
 *
 * @param columns of the table, or nested fields of them, by their names, outermost first
 * @param maxPositionBits the maximum number of bits of a position
 */
private[spark] final case class RowOrder(
    curve: SpaceFillingCurve,
    columns: Seq[Seq[String]],
    maxPositionBits: Int = 63
) {

  /** The number of bits of each coordinate of the grid. */
  val bits: Int =
    if (columns.size == 1) RowOrder.MaxBitsOfOne
    else RowOrder.MaxBits.min(maxPositionBits / columns.size).max(1)

  /** The columns of the table that have to be read. */
  def roots: Seq[String] = columns.map(_.head).distinct

  /** The values of the columns in rows of a schema. */
  def values(rows: StructType): Seq[Expression] = columns.map { names =>
    val i = rows.fieldIndex(names.head)
    names.tail.foldLeft[Expression](BoundReference(i, rows(i).dataType, nullable = true)) {
      (struct, field) =>
        GetStructField(struct, struct.dataType.asInstanceOf[StructType].fieldIndex(field))
    }
  }

  /** The same, cut to the length at which boundaries between ranges differ. */
  def prefixes(rows: StructType): Seq[Expression] = values(rows).map { value =>
    value.dataType match {
      case _: StringType => Substring(value, Literal(1), Literal(RowOrder.MaxPrefixLength))
      case _ => value
    }
  }

  /**
   * What orders rows of the same position. For one column, the positions are ranges of its values, and it orders
   * the rows of a range.
   */
  def ties(rows: StructType): Seq[Expression] = if (columns.size == 1) values(rows) else Nil

  /**
   * The order of the rows of one group, by a sample of them. The ranges of each column have about the same number of
   * rows, and so have the parts.
   *
   * @param sample rows of `prefixes`
   * @param prefixes the values in these rows
   * @param numParts how many parts the rows are cut into
   * @param firstPart the number of the first of them
   */
  def by(
      sample: IndexedSeq[InternalRow],
      prefixes: Seq[Expression],
      numParts: Int,
      firstPart: Int
  ): GroupOrder = {
    val ranges = prefixes.map { prefix =>
      val (nulls, values) = sample.map(prefix.eval).partition(_ == null)
      val sorted = values.sorted(RangeBoundaries.ordering(prefix.dataType))
      RangeBoundaries.between(nulls.size, sorted, 1 << bits)
    }
    val position = CurvePosition.of(curve, bits, prefixes, ranges)
    val positions = sample.map(row => position.eval(row).asInstanceOf[Long]).sorted
    GroupOrder(this, ranges, PartCuts.of(positions, numParts, firstPart))
  }
}

private[spark] object RowOrder {

  /**
   * @param schema the table's columns
   * @param names of columns that the schema has, in any letter case
   */
  def along(curve: SpaceFillingCurve, schema: StructType, names: Seq[Seq[String]]): RowOrder =
    RowOrder(curve, names.map(spelled(schema, _)))

  /** The names of columns as tags and the history have them: a JSON array. */
  def names(columns: Seq[Seq[String]]): String =
    Json.of(columns.map(_.map(quoteIfNeeded).mkString("."))).toString

  private def spelled(schema: StructType, names: Seq[String]): Seq[String] =
    names.headOption.fold(Seq.empty[String]) { name =>
      val field = schema.find(f => ColumnNames.folded(f.name) == ColumnNames.folded(name)).get
      field.dataType match {
        case struct: StructType => field.name +: spelled(struct, names.tail)
        case _ => Seq(field.name)
      }
    }

  /** Finer ranges than these are not distinguished by the statistics of files and pages. */
  private val MaxBits = 10
  private val MaxBitsOfOne = 16

  private val MaxPrefixLength = 128
}

/**
 * The order of the rows of one group of files.
 *
 * @param ranges the ranges of each column
 */
private[spark] final case class GroupOrder(
    order: RowOrder,
    ranges: Seq[RangeBoundaries],
    parts: PartCuts
) {

  /** The position on the curve of a row of this schema. */
  def position(rows: StructType): Expression =
    CurvePosition.of(order.curve, order.bits, order.values(rows), ranges)
}
