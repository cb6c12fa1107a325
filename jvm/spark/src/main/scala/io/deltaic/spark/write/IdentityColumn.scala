package io.deltaic.spark.write

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.LeafExpression
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.types.{DataType, LongType, StructField}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.scan.ColumnKeys

/**
 * A column whose values the table numbers (Protocol § Identity Columns).
 *
 * @param highWaterMark the value furthest from `start` that any commit holds
 */
private[spark] final case class IdentityColumn(
    name: String,
    start: Long,
    step: Long,
    allowExplicitInsert: Boolean,
    highWaterMark: Option[Long]
) {

  /** The first value of the sequence that lies beyond the mark. */
  def next(table: String): Long = {
    val steps = highWaterMark.fold(BigInt(0)) { mark =>
      val passed = BigInt(mark) - BigInt(start)
      if (passed.signum == -step.sign) BigInt(0) else passed / step + 1
    }
    val value = BigInt(start) + steps * step
    if (!value.isValidLong) throw IdentityColumn.overflow(table, name)
    value.toLong
  }

  /** Numbers the rows of an append or an overwrite. */
  def value(table: String): IdentityValue = IdentityValue(table, name, next(table), step)

  /** Whether a value is beyond another, or beyond none. */
  def isBeyond(value: Long, mark: Option[Long]): Boolean =
    mark.forall(m => if (step > 0) value > m else value < m)
}

private[spark] object IdentityColumn {
  def of(field: StructField): Option[IdentityColumn] = {
    val metadata = field.metadata
    Option.when(metadata.contains(ColumnKeys.IdentityStart))(
      IdentityColumn(
        field.name,
        metadata.getLong(ColumnKeys.IdentityStart),
        metadata.getLong(ColumnKeys.IdentityStep),
        metadata.contains(ColumnKeys.IdentityAllowExplicitInsert) && metadata.getBoolean(
          ColumnKeys.IdentityAllowExplicitInsert
        ),
        Option.when(
          metadata.contains(ColumnKeys.IdentityHighWaterMark)
        )(metadata.getLong(ColumnKeys.IdentityHighWaterMark))
      )
    )
  }

  def explicitInsert(table: String, column: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_IDENTITY_EXPLICIT_INSERT",
    Map("table" -> table, "column" -> column)
  )

  def updated(table: String, column: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_IDENTITY_UPDATE",
    Map("table" -> table, "column" -> column)
  )

  def overflow(table: String, column: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_IDENTITY_OVERFLOW",
    Map("table" -> table, "column" -> column)
  )
}

/**
 * The next value of an identity column. The tasks of a stage take turns, so that no two give the same
 * value: that is all that ties them together, and it leaves gaps.
 *
 * @param lane which of `lanes` expressions of one statement that number the same column this is
 * @param once whether the optimizer must know that each evaluation gives another value; where it may
 *             not be told, nothing may copy the expression
 */
private[spark] final case class IdentityValue(
    table: String,
    column: String,
    first: Long,
    step: Long,
    lane: Int = 0,
    lanes: Int = 1,
    once: Boolean = true
) extends LeafExpression {
  override lazy val deterministic: Boolean = !once
  override def stateful: Boolean = true
  override def foldable: Boolean = false
  override def nullable: Boolean = false
  override def dataType: DataType = LongType

  @transient private lazy val counter = newCounter()

  override def eval(input: InternalRow): Any = counter.next()

  def newCounter(): IdentityCounter = {
    val (task, tasks) =
      Option(TaskContext.get()).fold((0, 1))(t => (t.partitionId(), t.numPartitions()))
    new IdentityCounter(this, task.toLong * lanes + lane, tasks.toLong * lanes)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val expression = ctx.addReferenceObj("identity", this)
    val state = ctx.addMutableState(classOf[IdentityCounter].getName, "identityCounter")
    // On first use, not when a partition begins: where MERGE is not compiled as a whole, Spark says that to none of
    // its projections.
    val code = code"""
      if ($state == null) $state = $expression.newCounter();
      final long ${ev.value} = $state.next();"""
    ev.copy(code = code, isNull = FalseLiteral)
  }
}

/** Counts `first + step * (turn + stride * n)`. */
private[spark] final class IdentityCounter(value: IdentityValue, turn: Long, stride: Long) {
  private var steps = turn

  def next(): Long =
    try {
      val result = Math.addExact(value.first, Math.multiplyExact(value.step, steps))
      steps = Math.addExact(steps, stride)
      result
    } catch {
      case _: ArithmeticException => throw IdentityColumn.overflow(value.table, value.column)
    }
}
