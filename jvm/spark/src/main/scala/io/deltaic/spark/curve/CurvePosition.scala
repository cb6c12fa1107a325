package io.deltaic.spark.curve

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * The position of a row on a curve. Never null.
 *
 * @param children the coordinates of its cell: integers that are not null and have at most `bits` bits
 */
private[spark] final case class CurvePosition(
    children: Seq[Expression],
    curve: SpaceFillingCurve,
    bits: Int
) extends Expression {

  override def nullable: Boolean = false
  override def dataType: DataType = LongType
  override def prettyName: String = "deltaic_curve_position"

  override def eval(input: InternalRow): Any =
    curve.position(children.map(_.eval(input).asInstanceOf[Int]).toArray, bits)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val curveReference = ctx.addReferenceObj("curve", curve, classOf[SpaceFillingCurve].getName)
    val cell = ctx.addMutableState(
      "int[]",
      "cell",
      variable => s"$variable = new int[${children.size}];"
    )
    val coordinates = children.zipWithIndex.map { case (child, axis) =>
      val coordinate = child.genCode(ctx)
      code"""
        ${coordinate.code}
        $cell[$axis] = ${coordinate.value};
      """
    }
    val all = coordinates.reduceOption(_ + _).getOrElse(code"")
    ev.copy(
      code = code"""
        $all
        long ${ev.value} = $curveReference.position($cell, $bits);
      """,
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): CurvePosition = copy(children = newChildren)
}

private[spark] object CurvePosition {

  /** @param ranges of each of these columns, at most `2^bits` */
  def of(
      curve: SpaceFillingCurve,
      bits: Int,
      columns: Seq[Expression],
      ranges: Seq[RangeBoundaries]
  ): CurvePosition =
    CurvePosition(
      columns.zip(ranges).map { case (c, ofColumn) => RangeId(c, ofColumn) },
      curve,
      bits
    )
}
