package io.deltaic.spark.scan

import java.util.Locale

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.TableSchema

/**
 * What a filter on a column implies for the partition columns that are generated from it.
 *
 * The rule: a predicate is added only if it is true for every row for which the filter is true,
 * whatever the time zone and ANSI mode of the session that wrote the row. Two facts are used:
 *
 *   - Equal values have equal images, so `base = v` implies `g = f(v)` for any `f` of `base` alone.
 *   - Where `f` never descends, `base < v` implies `g <= f(v)`, and so on.
 *
 * `f` of a TIMESTAMP is the image of a local time that differs from UTC by up to 18 hours, in a zone
 * that is not recorded. So `f` is evaluated in UTC, at times moved 18 hours down or up, and equality
 * becomes a range. An `f` that depends on the zone and does not provably ascend implies nothing.
 */
private[scan] final class GeneratedPartitions(spark: SparkSession, schema: TableSchema) {

  private val columns: Seq[GeneratedColumnFilters] = if (schema.generated.isEmpty) Nil
  else {
    val attributes = ExpressionInternals.attributes(schema.all)
    val settings = SessionValue.settings
    for {
      name <- schema.partitionColumns
      sql <- schema.generated.get(name)
      column = schema.all(name)
      if !namesSessionZone(sql) && !isFitted(column)
      values <- resolved(sql, attributes, column, settings)
      base <- values.flatMap(_.value.references.toSeq).distinct match {
        case Seq(only: AttributeReference) => Some(only)
        case _ => None
      }
      if values.forall(_.value.deterministic)
    } yield new GeneratedColumnFilters(column, values, base)
  }

  private val clocks: Seq[GeneratedClock] = GeneratedClock.of(columns)

  def implied(filters: Seq[Expression]): Seq[Expression] =
    if (columns.isEmpty) Nil
    else filters.flatMap(filter => columns.flatMap(of(_, filter)) ++ clocks.flatMap(_.of(filter)))

  private def of(column: GeneratedColumnFilters, filter: Expression): Option[Expression] =
    filter match {
      case And(left, right) =>
        (of(column, left) ++ of(column, right)).reduceOption(And(_, _))
      case Or(left, right) =>
        for (l <- of(column, left); r <- of(column, right)) yield Or(l, r)
      case BaseColumnValues(base, comparison) if base == column.base.name => column.of(comparison)
      case _ => None
    }

  /** Once resolved, the zone of this session is a literal like any other. */
  private def namesSessionZone(sql: String): Boolean = {
    val lower = sql.toLowerCase(Locale.ROOT)
    lower.contains("current_timezone") || lower.contains("convert_timezone")
  }

  /** For CHAR and VARCHAR the stored string may differ from the computed one: padded, or without trailing blanks. */
  private def isFitted(column: StructField): Boolean =
    CharVarcharUtils.getRawType(column.metadata).isDefined

  /** As evaluated by the sessions that may have written the rows; none if it uses another engine's function. */
  private def resolved(
      sql: String,
      attributes: Seq[Attribute],
      column: StructField,
      settings: Seq[SQLConf]
  ): Option[Seq[SessionValue]] =
    try
      Some(settings.map { session =>
        SQLConf.withExistingConf(session) {
          val value = ExpressionInternals.resolved(spark, sql, attributes)
          SessionValue(session, inColumnType(value, column))
        }
      })
    catch { case NonFatal(_) => None }

  private def inColumnType(value: Expression, column: StructField): Expression =
    if (value.dataType == column.dataType) value else Cast(value, column.dataType, Some("UTC"))
}

/** A bound that a filter puts on a column; `value` is not null. */
private[scan] sealed trait ComparedValues
private[scan] final case class Exactly(value: Literal) extends ComparedValues
private[scan] final case class AtMost(value: Literal) extends ComparedValues
private[scan] final case class AtLeast(value: Literal) extends ComparedValues
private[scan] final case class OneOf(values: Seq[Literal]) extends ComparedValues
private[scan] case object Absent extends ComparedValues

/** Finds the column and the bound in a filter. `<` and `<=` bound images alike. */
private[scan] object BaseColumnValues {

  def unapply(filter: Expression): Option[(String, ComparedValues)] = filter match {
    case EqualTo(a: AttributeReference, Value(v)) => Some(a.name -> Exactly(v))
    case EqualTo(Value(v), a: AttributeReference) => Some(a.name -> Exactly(v))
    case EqualNullSafe(a: AttributeReference, Value(v)) => Some(a.name -> Exactly(v))
    case EqualNullSafe(Value(v), a: AttributeReference) => Some(a.name -> Exactly(v))
    case LessThan(a: AttributeReference, Value(v)) => Some(a.name -> AtMost(v))
    case LessThanOrEqual(a: AttributeReference, Value(v)) => Some(a.name -> AtMost(v))
    case GreaterThan(a: AttributeReference, Value(v)) => Some(a.name -> AtLeast(v))
    case GreaterThanOrEqual(a: AttributeReference, Value(v)) => Some(a.name -> AtLeast(v))
    case LessThan(Value(v), a: AttributeReference) => Some(a.name -> AtLeast(v))
    case LessThanOrEqual(Value(v), a: AttributeReference) => Some(a.name -> AtLeast(v))
    case GreaterThan(Value(v), a: AttributeReference) => Some(a.name -> AtMost(v))
    case GreaterThanOrEqual(Value(v), a: AttributeReference) => Some(a.name -> AtMost(v))
    case In(a: AttributeReference, values) =>
      val literals = values.collect { case Value(v) => v }
      Option.when(literals.length == values.length)(a.name -> OneOf(literals))
    case InSet(a: AttributeReference, values) if !values.contains(null) =>
      Some(a.name -> OneOf(values.toSeq.map(Literal(_, a.dataType))))
    case IsNull(a: AttributeReference) => Some(a.name -> Absent)
    case _ => None
  }

  private object Value {
    def unapply(expression: Expression): Option[Literal] = expression match {
      case literal: Literal if literal.value != null => Some(literal)
      case _ => None
    }
  }
}
