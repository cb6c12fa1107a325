package io.deltaic.spark.schema

import java.util.Locale

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.QuotingUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{ExpressionInternals, FunctionInternals}
import org.apache.spark.sql.types._

import io.deltaic.protocol.{
  DeltaicException,
  DeltaicThrowable,
  Metadata => TableMetadata,
  Protocol,
  TableFeatures
}
import io.deltaic.spark.util.Json

/**
 * The conditions of a table on its rows, each only if the protocol supports its feature
 * (Protocol § Column Invariants, § CHECK Constraints, § Generated Columns).
 */
private[spark] object TableConditions {

  val ConstraintPrefix = "delta.constraints."

  /** Whether a property defines a CHECK constraint; as in delta-spark, its name is case-insensitive. */
  def isConstraint(property: String): Boolean =
    property.toLowerCase(Locale.ROOT).startsWith(ConstraintPrefix)

  /**
   * @param rows the columns of the rows that will be written, in their order
   * @param computed generated columns that the write's own query computes
   */
  def of(
      spark: SparkSession,
      table: String,
      protocol: Protocol,
      metadata: TableMetadata,
      rows: StructType,
      computed: Set[String] = Set.empty
  ): Seq[RowCheck] = {
    val resolver = new ConditionResolver(spark, table, rows, metadata.partitionColumns)
    val constraints =
      if (!TableFeatures.supports(protocol, "checkConstraints")) Nil
      else
        metadata.configuration.toSeq.sorted.collect {
          case (key, sql) if isConstraint(key) =>
            resolver.check(s"CHECK constraint ${key.drop(ConstraintPrefix.length)}", sql)
        }
    val invariants =
      if (!TableFeatures.supports(protocol, "invariants")) Nil
      else
        invariantsIn(table, rows, Nil).map { case (column, sql) =>
          resolver.check(s"invariant of column $column", sql)
        }
    // A generation expression is evaluated on values, not on their stored form.
    val ofValues = new ConditionResolver(spark, table, rows)
    val generated =
      if (!TableFeatures.supports(protocol, "generatedColumns")) Nil
      else
        rows.toSeq.collect {
          case field
              if field.metadata.contains(ColumnKeys.GenerationExpression) &&
              !computed(field.name) =>
            val sql = field.metadata.getString(ColumnKeys.GenerationExpression)
            val condition = s"${QuotingUtils.quoteIdentifier(field.name)} <=> ($sql)"
            ofValues.check(s"generated column ${field.name}", condition)
        }
    constraints ++ invariants ++ generated
  }

  /** The invariants of columns and of fields in structs, with their dotted names. */
  private def invariantsIn(
      table: String,
      struct: StructType,
      path: Seq[String]
  ): Seq[(String, String)] = struct.toSeq.flatMap { field =>
    val here = path :+ field.name
    val own = Option.when(field.metadata.contains(ColumnKeys.Invariant)) {
      val json = field.metadata.getString(ColumnKeys.Invariant)
      here.mkString(".") -> invariantSql(table, here, json)
    }
    val below = field.dataType match {
      case nested: StructType => invariantsIn(table, nested, here)
      case other =>
        elementInvariants(other, here).headOption.foreach { case (column, json) =>
          throw invalid(table, column, json, "it is of a field in an array or a map")
        }
        Nil
    }
    own.toSeq ++ below
  }

  /** The invariants of fields in arrays and maps, which are not supported. */
  private def elementInvariants(
      dataType: DataType,
      path: Seq[String]
  ): Seq[(Seq[String], String)] = dataType match {
    case struct: StructType =>
      struct.toSeq.flatMap { field =>
        val here = path :+ field.name
        val own = Option.when(field.metadata.contains(ColumnKeys.Invariant)) {
          here -> field.metadata.getString(ColumnKeys.Invariant)
        }
        own.toSeq ++ elementInvariants(field.dataType, here)
      }
    case array: ArrayType => elementInvariants(array.elementType, path :+ "element")
    case map: MapType =>
      elementInvariants(map.keyType, path :+ "key") ++
        elementInvariants(map.valueType, path :+ "value")
    case _ => Nil
  }

  private def invariantSql(table: String, column: Seq[String], json: String): String = {
    def malformed(cause: Throwable) = invalid(
      table,
      column,
      json,
      "it is not of the form {\"expression\": {\"expression\": \"<SQL>\"}}",
      cause
    )
    val sql =
      try Json.parse(json).path("expression").path("expression")
      catch { case e: Exception => throw malformed(e) }
    if (!sql.isTextual) throw malformed(null)
    sql.textValue
  }

  private def invalid(
      table: String,
      column: Seq[String],
      json: String,
      reason: String,
      cause: Throwable = null
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_INVALID_CONSTRAINT",
    Map(
      "table" -> table,
      "constraint" -> s"invariant of column ${column.mkString(".")}",
      "expression" -> json,
      "reason" -> reason
    ),
    cause
  )
}

/**
 * Resolves conditions on the columns of a table.
 *
 * @param partitionColumns columns in which an empty string is stored as null, so that conditions see null
 */
private[spark] final class ConditionResolver(
    spark: SparkSession,
    table: String,
    rows: StructType,
    partitionColumns: Seq[String] = Nil
) {
  private val columns = ExpressionInternals.attributes(rows)

  /** @throws DeltaicThrowable if it is not a condition on single rows of the table */
  def check(name: String, sql: String): RowCheck = {
    val condition =
      try ExpressionInternals.resolved(spark, sql, columns)
      catch {
        case e: AnalysisException => throw invalid(name, sql, e.getMessage, e)
        case e: IllegalArgumentException =>
          // Spark plans SQL functions as subqueries, and Python functions outside of the expression.
          val function = FunctionInternals.ofSession(spark, sql)
          throw invalid(name, sql, function.fold(e.getMessage)(notElsewhere), e)
      }
    if (condition.dataType != BooleanType)
      throw invalid(name, sql, s"it is of type ${condition.dataType.sql}, not BOOLEAN", null)
    RowCheck(name, sql, bound(condition), shown(condition))
  }

  /**
   * The same for a new condition of a table: other writers must be able to evaluate it with
   * the same result.
   *
   * @throws DeltaicThrowable also if it is not deterministic, or depends on the session
   */
  def checkNew(name: String, sql: String): RowCheck = {
    val checked = check(name, sql)
    if (!checked.condition.deterministic)
      throw invalid(
        name,
        sql,
        "it is not deterministic: a row could meet it now and break it later",
        null
      )
    requireBuiltIn(name, sql, checked.condition)
    checked
  }

  /** @param resolved the condition as Spark has resolved it */
  def requireBuiltIn(name: String, sql: String, resolved: Expression): Unit =
    FunctionInternals.ofSession(spark, sql).orElse(FunctionInternals.ofSession(resolved)).foreach {
      found => throw invalid(name, sql, notElsewhere(found), null)
    }

  private def notElsewhere(found: String): String =
    s"$found, and other sessions and engines cannot evaluate it; use what is built into Spark"

  /** The condition of the rows that a write replaces, over columns of the same names. */
  def replaced(condition: Expression): RowCheck = {
    val byName = columns.map(column => column.name -> column).toMap
    val own = condition.transformUp { case column: AttributeReference => byName(column.name) }
    RowCheck(
      "condition of the rows to replace",
      condition.sql,
      bound(own),
      shown(own),
      error = "DELTAIC_REPLACE_WHERE_MISMATCH"
    )
  }

  private def invalid(
      name: String,
      sql: String,
      reason: String,
      cause: Throwable
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_INVALID_CONSTRAINT",
    Map("table" -> table, "constraint" -> name, "expression" -> sql, "reason" -> reason),
    cause
  )

  /** The values that the condition references: nested fields without their enclosing structs. */
  private def shown(condition: Expression): Seq[(String, Expression)] = {
    val zone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    valuesIn(condition).distinct.map { case (name, value) =>
      name -> ToPrettyString(bound(value), zone)
    }
  }

  /** The expression over rows in their stored form. */
  private def bound(expression: Expression): Expression =
    ExpressionInternals.bound(
      expression.transformUp { case column: Attribute => stored(column) },
      columns
    )

  private def stored(column: Attribute): Expression = column.dataType match {
    case _: StringType | BinaryType if partitionColumns.contains(column.name) =>
      If(GreaterThan(Length(column), Literal(0)), column, Literal(null, column.dataType))
    case _ => column
  }

  private def valuesIn(expression: Expression): Seq[(String, Expression)] =
    ConditionResolver.nameOf(expression) match {
      case Some(name) => Seq(name -> expression)
      case None => expression.children.flatMap(valuesIn)
    }
}

private object ConditionResolver {
  def nameOf(expression: Expression): Option[String] = expression match {
    case column: Attribute => Some(column.name)
    case field: GetStructField => nameOf(field.child).map(_ + "." + field.extractFieldName)
    case _ => None
  }
}
