package io.deltaic.spark.schema

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.LeafExpression
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.types.{DataType, LongType, StructField}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * An identity column (Protocol § Identity Columns).
 *
 * @param highWaterMark the value furthest from `start` in any commit
 */
private[spark] final case class IdentityColumn(
    name: String,
    start: Long,
    step: Long,
    allowExplicitInsert: Boolean,
    highWaterMark: Option[Long]
) {

  /** The first value of the sequence beyond the high-water mark. */
  def next(table: String): Long = {
    val steps = highWaterMark.fold(BigInt(0)) { mark =>
      val passed = BigInt(mark) - BigInt(start)
      if (passed.signum == -step.sign) BigInt(0) else passed / step + 1
    }
    val value = BigInt(start) + steps * step
    if (!value.isValidLong) throw IdentityColumn.overflow(table, name)
    value.toLong
  }

  /** Generates the values for the rows of an append or an overwrite. */
  def value(table: String): IdentityValue = IdentityValue(table, name, next(table), step)

  /** Whether a value is beyond the mark, or there is no mark. */
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
 * The next value of an identity column. Each task of a stage generates every n-th value, so that values are unique
 * without coordination. This leaves gaps.
 *
 * @param lane the index of this expression among the `lanes` of one statement that generate values of the same column
 * @param once whether the expression is nondeterministic to the optimizer, since each evaluation returns another
 *             value; if it is not, nothing may copy the expression
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
    // Initialized on first use, not at the start of a partition: without whole-stage code generation for MERGE, Spark
    // does not initialize its projections.
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
