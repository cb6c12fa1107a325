package io.deltaic.spark.curve

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator,
  CodegenContext,
  ExprCode,
  FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{
  ByteType,
  DataType,
  DateType,
  IntegerType,
  LongType,
  ShortType,
  StringType,
  TimestampNTZType,
  TimestampType
}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Boundaries between ranges of values.
 *
 * @param first the ID of the range below all boundaries
 * @param values ascending, each the last value of its range; ranges without values have equal boundaries
 */
private[spark] final case class RangeBoundaries(first: Int, values: Array[Any]) {

  /** The values of an integral type, which are found faster so. */
  @transient lazy val longs: Array[Long] = values.map(_.asInstanceOf[Number].longValue)
}

private[spark] object RangeBoundaries {

  /**
   * Boundaries of ranges with about the same number of values each. Nulls are the first values.
   *
   * @param sorted the values that are not null
   */
  def between(numNulls: Int, sorted: IndexedSeq[Any], numRanges: Int): RangeBoundaries = {
    val (nulls, others) =
      lastOfRanges(numNulls + sorted.size, numRanges).partition(_ < numNulls)
    RangeBoundaries(nulls.size, others.map(i => sorted(i - numNulls)).toArray)
  }

  /** The ordinals of the last values of all ranges but the last, of so many values in their order. */
  def lastOfRanges(numValues: Int, numRanges: Int): IndexedSeq[Int] =
    (1 until numRanges)
      .map(range => (range.toLong * numValues / numRanges).toInt - 1)
      .filter(_ >= 0)

  /** The order of minimum and maximum statistics: that of the type, without collations. */
  def ordering(dataType: DataType): Ordering[Any] = dataType match {
    case _: StringType =>
      (a, b) => a.asInstanceOf[UTF8String].binaryCompare(b.asInstanceOf[UTF8String])
    case other => TypeUtils.getInterpretedOrdering(other)
  }
}

/**
 * The range that a value falls into. Never null: null is in range 0.
 *
 * Generated code does not depend on the boundaries, so that it is compiled once for all of them.
 */
private[spark] final case class RangeId(child: Expression, boundaries: RangeBoundaries)
    extends UnaryExpression {

  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType
  override def prettyName: String = "deltaic_range_id"

  @transient private lazy val ordering = RangeBoundaries.ordering(child.dataType)

  override def eval(input: InternalRow): Any = {
    val value = child.eval(input)
    if (value == null) 0
    else {
      var (low, high) = (0, boundaries.values.length)
      while (low < high) {
        val middle = (low + high) >>> 1
        if (ordering.lt(boundaries.values(middle), value)) low = middle + 1 else high = middle
      }
      boundaries.first + low
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val reference =
      ctx.addReferenceObj("boundaries", boundaries, classOf[RangeBoundaries].getName)
    val value = child.genCode(ctx)
    val low = ctx.freshName("low")
    val high = ctx.freshName("high")
    val middle = ctx.freshName("middle")
    val search = ctx.freshName("boundaries")
    val (values, isLess) = child.dataType match {
      case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType |
          TimestampNTZType =>
        (s"long[] $search = $reference.longs();", s"$search[$middle] < ${value.value}")
      case other =>
        val boundary = s"((${CodeGenerator.boxedType(other)}) $search[$middle])"
        val compared = other match {
          case _: StringType => s"$boundary.binaryCompare(${value.value})"
          case _ => ctx.genComp(other, boundary, value.value)
        }
        (s"Object[] $search = (Object[]) $reference.values();", s"$compared < 0")
    }
    ev.copy(
      code = code"""
        ${value.code}
        int ${ev.value} = 0;
        if (!${value.isNull}) {
          $values
          int $low = 0;
          int $high = $search.length;
          while ($low < $high) {
            int $middle = ($low + $high) >>> 1;
            if ($isLess) $low = $middle + 1; else $high = $middle;
          }
          ${ev.value} = $reference.first() + $low;
        }
      """,
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildInternal(newChild: Expression): RangeId =
    copy(child = newChild)
}
