package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  Block,
  CodeGenerator,
  CodegenContext,
  ExprCode,
  ExprValue
}
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Cast,
  EvalMode,
  Expression,
  LeafExpression,
  ToPrettyString,
  UnaryExpression
}
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData, TypeUtils}
import org.apache.spark.sql.types._

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.write.LossyCast

/**
 * A value that is cast for a column whose type could not be widened to it. A value that the cast would truncate, such
 * as fractional digits, is an error that names the column. An ANSI cast alone truncates it silently.
 *
 * @param table its path, for errors
 */
private[sql] final case class ExactValue(
    child: Expression,
    wanted: DataType,
    zone: Option[String],
    table: String,
    column: String
) extends UnaryExpression {

  override def dataType: DataType = wanted
  override def nullable: Boolean = cast.nullable
  override def sql: String = child.sql
  override def toString: String = s"exactly($child as ${wanted.sql})"

  @transient private lazy val cast =
    Cast(BoundReference(0, child.dataType, child.nullable), wanted, zone, EvalMode.ANSI)

  @transient private lazy val isExact: (Any, Any) => Boolean =
    ExactValue.check(child.dataType, wanted, zone).getOrElse((_, _) => true)

  override def eval(input: InternalRow): Any = {
    val value = child.eval(input)
    if (value == null) null
    else {
      val stored = cast.eval(InternalRow(value))
      if (stored != null && !isExact(value, stored)) throw refused(value, stored)
      stored
    }
  }

  /** The error that generated code throws, if any. In Java, which calls it, [[DeltaicThrowable]] is an interface. */
  def refusal(value: Any, stored: Any): Throwable =
    if (isExact(value, stored)) null else refused(value, stored)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val value = child.genCode(ctx)
    val stored = castOf(value, ctx)
    val self = ctx.addReferenceObj("exactValue", this)
    val refusal = ctx.freshName("refusal")
    ev.copy(code = code"""
      ${value.code}
      boolean ${ev.isNull} = true;
      ${CodeGenerator.javaType(wanted)} ${ev.value} = ${CodeGenerator.defaultValue(wanted)};
      if (!${value.isNull}) {
        ${stored.code}
        ${ev.isNull} = ${stored.isNull};
        ${ev.value} = ${stored.value};
        if (!${ev.isNull}) {
          Throwable $refusal = $self.refusal(
            ${boxed(value.value, child.dataType)}, ${boxed(ev.value, wanted)});
          if ($refusal != null) org.apache.spark.unsafe.Platform.throwException($refusal);
        }
      }
    """)
  }

  /** The code that casts an evaluated value, which is in variables of the same method. */
  private def castOf(value: ExprCode, ctx: CodegenContext): ExprCode = {
    val variables = ctx.currentVars
    ctx.currentVars = Nil
    try cast.copy(child = EvaluatedValue(value, child.dataType, child.nullable)).genCode(ctx)
    finally ctx.currentVars = variables
  }

  private def boxed(value: ExprValue, dataType: DataType): Block =
    if (CodeGenerator.isPrimitiveType(dataType))
      code"${CodeGenerator.boxedType(dataType)}.valueOf($value)"
    else code"$value"

  private def refused(value: Any, stored: Any): DeltaicThrowable = {
    val from = child.dataType
    DeltaicException(
      "DELTAIC_VALUE_DOES_NOT_FIT",
      Map(
        "table" -> table,
        "column" -> column,
        "type" -> wanted.sql,
        "reason" -> s"${shown(value, from)} of type ${from.sql} would become ${shown(stored, wanted)}."
      )
    )
  }

  /** As users see it: Catalyst represents a date as the number of its day. */
  private def shown(value: Any, dataType: DataType): String =
    ToPrettyString(BoundReference(0, dataType, nullable = true), zone)
      .eval(InternalRow(value))
      .toString

  override protected def withNewChildInternal(newChild: Expression): ExactValue =
    copy(child = newChild)
}

private[sql] object ExactValue {

  /** Whether a cast may truncate values; overflow is handled by the cast itself. */
  def mayCut(from: DataType, to: DataType): Boolean = check(from, to, Some("UTC")).isDefined

  /** Compares a value with the result of its cast; none if a cast of these types does not truncate. */
  private def check(
      from: DataType,
      to: DataType,
      zone: Option[String]
  ): Option[(Any, Any) => Boolean] = (from, to) match {
    case (struct: StructType, wanted: StructType) if struct.length == wanted.length =>
      val fields = struct.fields.zip(wanted.fields).zipWithIndex.flatMap { case ((f, w), i) =>
        check(f.dataType, w.dataType, zone).map { isKept => (a: InternalRow, b: InternalRow) =>
          a.isNullAt(i) || b.isNullAt(i) || isKept(a.get(i, f.dataType), b.get(i, w.dataType))
        }
      }
      Option.when(fields.nonEmpty) { (value, stored) =>
        fields.forall(_(value.asInstanceOf[InternalRow], stored.asInstanceOf[InternalRow]))
      }
    case (ArrayType(element, _), ArrayType(wanted, _)) =>
      check(element, wanted, zone).map { isKept => (value, stored) =>
        areKept(value.asInstanceOf[ArrayData], stored.asInstanceOf[ArrayData], element, wanted)(
          isKept
        )
      }
    case (MapType(key, value, _), MapType(wantedKey, wantedValue, _)) =>
      val keys = check(key, wantedKey, zone)
      val values = check(value, wantedValue, zone)
      Option.when(keys.isDefined || values.isDefined) { (before, after) =>
        val (a, b) = (before.asInstanceOf[MapData], after.asInstanceOf[MapData])
        keys.forall(areKept(a.keyArray(), b.keyArray(), key, wantedKey)(_)) &&
        values.forall(areKept(a.valueArray(), b.valueArray(), value, wantedValue)(_))
      }
    case _ if LossyCast.truncates(from, to) =>
      val back = Cast(BoundReference(0, to, nullable = true), from, zone, EvalMode.TRY)
      val ordering = TypeUtils.getInterpretedOrdering(from)
      Some { (value, stored) =>
        val again = back.eval(InternalRow(stored))
        again != null && ordering.equiv(value, again)
      }
    case _ => None
  }

  private def areKept(before: ArrayData, after: ArrayData, from: DataType, to: DataType)(
      isKept: (Any, Any) => Boolean
  ): Boolean = (0 until before.numElements()).forall { i =>
    before.isNullAt(i) || after.isNullAt(i) || isKept(before.get(i, from), after.get(i, to))
  }
}

/** A value that generated code has already evaluated. */
private final case class EvaluatedValue(
    evaluated: ExprCode,
    override val dataType: DataType,
    override val nullable: Boolean
) extends LeafExpression {

  override def eval(input: InternalRow): Any =
    throw new IllegalStateException("only generated code has the value")

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ExprCode(evaluated.isNull, evaluated.value)
}
