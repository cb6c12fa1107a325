package io.deltaic.spark.scan.deletionvectors

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, Expression, Predicate}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Whether a row's deletion vector marks it as deleted (Protocol § Deletion Vectors). Never null: a
 * file without a vector has no deleted rows.
 *
 * @param left the file's vector, a [[DeletionVectorConstant]] or null
 * @param right the row's position in its data file, from 0
 */
private[spark] final case class IsDeleted(
    left: Expression,
    right: Expression,
    source: RowProbeSource
) extends BinaryExpression
    with Predicate {

  @transient private lazy val probe: RowProbe = source.newProbe()

  override def nullable: Boolean = false
  override def prettyName: String = "deltaic_is_deleted"
  override def toString: String = s"$prettyName($left, $right)"

  /** The probe follows one task's position; sharing it between tasks would make it seek each row. */
  override def stateful: Boolean = true

  override def eval(input: InternalRow): Any = {
    val vector = left.eval(input).asInstanceOf[UTF8String]
    vector != null && probe.isDeleted(vector, right.eval(input).asInstanceOf[Long])
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val sourceReference = ctx.addReferenceObj("deletionVectors", source)
    val probeClass = source.probeClass.getName
    val probeState = ctx.addMutableState(
      probeClass,
      "deletionVectorProbe",
      variable => s"$variable = ($probeClass) $sourceReference.newProbe();"
    )
    val vector = left.genCode(ctx)
    val rowIndex = right.genCode(ctx)
    ev.copy(
      code = code"""
        ${vector.code}
        ${rowIndex.code}
        boolean ${ev.value} =
          !${vector.isNull} && $probeState.isDeleted(${vector.value}, ${rowIndex.value});
      """,
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(left: Expression, right: Expression): IsDeleted =
    copy(left = left, right = right)
}
