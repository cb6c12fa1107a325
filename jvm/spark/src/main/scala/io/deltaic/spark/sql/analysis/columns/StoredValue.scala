package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator,
  CodegenContext,
  ExprCode,
  FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull
import org.apache.spark.sql.catalyst.expressions.{Expression, NamedExpression, UnaryExpression}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.types.DataType

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.write.files.NotNullCheck

/** A value that is cast for a column; one that does not fit is an error that names the column. */
private[spark] final case class StoredValue(child: Expression, table: String, column: String)
    extends UnaryExpression {

  override def dataType: DataType = child.dataType
  override def nullable: Boolean = child.nullable
  override def sql: String = child.sql
  override def toString: String = child.toString

  override def eval(input: InternalRow): Any =
    try child.eval(input)
    catch { case e: RuntimeException => throw explained(e) }

  /** The error that generated code throws instead of the caught one. Java would require its class to be declared. */
  def explained(problem: RuntimeException): Throwable = problem match {
    case cast: SparkThrowable if StoredValue.isAboutValue(cast) =>
      DeltaicException(
        "DELTAIC_VALUE_DOES_NOT_FIT",
        Map(
          "table" -> table,
          "column" -> column,
          "type" -> dataType.sql,
          "reason" -> problem.getMessage.takeWhile(_ != '\n')
        ),
        problem
      )
    case other => other
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val value = child.genCode(ctx)
    val self = ctx.addReferenceObj("storedValue", this)
    val problem = ctx.freshName("problem")
    ev.copy(code = code"""
      boolean ${ev.isNull} = true;
      ${CodeGenerator.javaType(dataType)} ${ev.value} = ${CodeGenerator.defaultValue(dataType)};
      try {
        ${value.code}
        ${ev.isNull} = ${value.isNull};
        ${ev.value} = ${value.value};
      } catch (RuntimeException $problem) {
        org.apache.spark.unsafe.Platform.throwException($self.explained($problem));
      }
    """)
  }

  override protected def withNewChildInternal(newChild: Expression): StoredValue =
    copy(child = newChild)
}

private object StoredValue {

  /** Whether the error is about a value, and not about the expression. */
  def isAboutValue(problem: SparkThrowable): Boolean =
    Option(problem.getCondition).exists(name => prefixes.exists(name.startsWith))

  private val prefixes = Seq("CAST_INVALID_INPUT", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
}

/** A value for a column that is NOT NULL; a null is an error that names the column. */
private[spark] final case class RequiredValue(child: Expression, table: String, column: String)
    extends UnaryExpression {

  override def dataType: DataType = child.dataType
  override def foldable: Boolean = false // without changed rows, there is no violation
  override def nullable: Boolean = false
  override def sql: String = child.sql
  override def toString: String = child.toString

  override def eval(input: InternalRow): Any = {
    val value = child.eval(input)
    if (value == null) throw violation
    value
  }

  /** In Java, which calls it, [[io.deltaic.protocol.DeltaicThrowable]] is an interface. */
  def violation: Throwable = NotNullCheck.violation(table, column)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val value = child.genCode(ctx)
    val self = ctx.addReferenceObj("requiredValue", this)
    ev.copy(
      code = code"""
        ${value.code}
        if (${value.isNull}) org.apache.spark.unsafe.Platform.throwException($self.violation());
      """,
      isNull = FalseLiteral,
      value = value.value
    )
  }

  override protected def withNewChildInternal(newChild: Expression): RequiredValue =
    copy(child = newChild)
}

private[sql] object RequiredValue {

  /** Replaces Spark's own check, whose error does not name the table. */
  def naming(value: Expression, table: String): Expression = value.transformUp {
    case AssertNotNull(child, path) => RequiredValue(child, table, path.mkString("."))
  }

  def naming(rows: Project, table: String): Project =
    if (!rows.projectList.exists(_.exists(_.isInstanceOf[AssertNotNull]))) rows
    else
      rows.copy(projectList =
        rows.projectList.map(naming(_: Expression, table).asInstanceOf[NamedExpression])
      )
}
