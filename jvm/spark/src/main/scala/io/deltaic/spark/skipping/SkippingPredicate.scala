package io.deltaic.spark.skipping

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Literal.{FalseLiteral, TrueLiteral}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratePredicate
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.schema.{LeafColumn, SkippingSchema}

/**
 * A predicate over the partition values and statistics of a file, derived from predicates over its rows.
 *
 * The soundness rule: it is false for a file only if no row of the file can satisfy all the
 * filters. For every other file it is true or null; null means that a required statistic is
 * missing. Both select the file.
 *
 * @param expression over the attributes in `fields`
 * @param fields the fields that the expression reads, each with the attribute that represents it
 */
final private[skipping] class SkippingPredicate(
    val expression: Expression,
    val fields: Seq[(FileField, Attribute)]
) {

  /** Whether it selects every file, whatever its statistics are. */
  def selectsAll: Boolean = expression == TrueLiteral

  /** Interpreted if compiling would take longer than it saves. */
  def evaluator(files: Int): BasePredicate = {
    val selects = BindReferences.bindReference[Expression](
      Coalesce(Seq(expression, TrueLiteral)),
      fields.map(_._2)
    )
    val predicate =
      if (files < SkippingPredicate.FilesWorthCompiling) Predicate.createInterpreted(selects)
      else CompiledPredicate.createObject(selects)
    predicate.initialize(0)
    predicate
  }
}

/**
 * Compiled as Spark does, but without eliminating common subexpressions: Spark evaluates those in
 * advance, even if an OR would short-circuit before them. If one fails, files would be selected
 * that the interpreted predicate skips.
 */
private object CompiledPredicate
    extends CodeGeneratorWithInterpretedFallback[Expression, BasePredicate] {

  override protected def createCodeGeneratedObject(in: Expression): BasePredicate =
    GeneratePredicate.generate(in, useSubexprElimination = false)

  override protected def createInterpretedObject(in: Expression): BasePredicate =
    InterpretedPredicate(in)
}

private[skipping] object SkippingPredicate {
  private val FilesWorthCompiling = 4096

  /** @param filters resolved, deterministic or not; a row must satisfy all of them */
  def of(filters: Seq[Expression], schema: SkippingSchema): SkippingPredicate = {
    val attributes = mutable.LinkedHashMap.empty[FileField, AttributeReference]
    val rules = new SkippingRules(
      schema,
      f => attributes.getOrElseUpdate(f, AttributeReference(f.name, f.dataType)())
    )
    val expression = filters.map(rules.mayBeTrue).foldLeft[Expression](TrueLiteral)(rules.and)
    val used = expression.references
    new SkippingPredicate(expression, attributes.toSeq.filter { case (_, a) => used.contains(a) })
  }
}

/**
 * Translates predicates over rows.
 *
 * `NOT` does not negate what it finds of its child, since "no row satisfies it" does not mean "all
 * rows fail it". Each predicate has two translations instead, and both obey the soundness rule:
 * whether a row may make it true, and whether one may make it false. `NOT` exchanges them. A
 * predicate without a rule may be both.
 */
final private[skipping] class SkippingRules(
    schema: SkippingSchema,
    field: FileField => Expression
) {
  private val Unknown: Expression = TrueLiteral
  private val Never: Expression = FalseLiteral
  private val rules = new BoundsRules(field)
  private val functions = new MonotoneFunctions(constant)

  def mayBeTrue(e: Expression): Expression = mayBe(outcome = true, e)

  def and(l: Expression, r: Expression): Expression = (l, r) match {
    case (FalseLiteral, _) | (_, FalseLiteral) => FalseLiteral
    case (TrueLiteral, other) => other
    case (other, TrueLiteral) => other
    case _ => And(l, r)
  }

  private def or(l: Expression, r: Expression): Expression = (l, r) match {
    case (TrueLiteral, _) | (_, TrueLiteral) => TrueLiteral
    case (FalseLiteral, other) => other
    case (other, FalseLiteral) => other
    case _ => Or(l, r)
  }

  /**
   * Whether a row may give `e` this outcome. By De Morgan, one false side makes a conjunction
   * false.
   */
  private def mayBe(outcome: Boolean, e: Expression): Expression = e match {
    case Literal(value, BooleanType) => if (value == outcome) Unknown else Never
    case p if PartitionFilter.matches(p, schema) => onPartitionValues(p, outcome)
    case Not(child) => mayBe(!outcome, child)
    case And(l, r) if outcome => and(mayBe(outcome, l), mayBe(outcome, r))
    case And(l, r) => or(mayBe(outcome, l), mayBe(outcome, r))
    case Or(l, r) if outcome => or(mayBe(outcome, l), mayBe(outcome, r))
    case Or(l, r) => and(mayBe(outcome, l), mayBe(outcome, r))
    case e if e.foldable => constant(e).fold(Unknown)(mayBe(outcome, _))
    case IsNull(Coalesce(choices)) if outcome =>
      choices.map(c => mayBe(outcome = true, IsNull(c))).reduce(and)
    case IsNull(Coalesce(choices)) =>
      choices.map(c => mayBe(outcome = true, IsNotNull(c))).reduce(or)
    case IsNotNull(choice: Coalesce) => mayBe(!outcome, IsNull(choice))
    case SkippingRules.Fallback(ofFirst, first, ofRest) =>
      val whereNull = and(mayBe(outcome = true, IsNull(first)), mayBe(outcome, ofRest))
      or(and(mayBe(outcome = true, IsNotNull(first)), mayBe(outcome, ofFirst)), whereNull)
    case IsNull(column) => nullness(column, isNull = outcome)
    case IsNotNull(column) => nullness(column, isNull = !outcome)
    case EqualNullSafe(l, r) => nullSafeEqual(l, r, outcome)
    case Comparison(l, op, r) => compare(l, if (outcome) op else op.negated, r)
    case In(column, list) => inConstants(column, list, outcome)
    case InSet(column, values) =>
      inConstants(column, values.toSeq.map(Literal(_, column.dataType)), outcome)
    case StartsWith(column, prefix) => startsWith(column, prefix, outcome)
    case Like(column, pattern, escape) if outcome => like(column, pattern, escape)
    case column if column.dataType == BooleanType =>
      compare(column, Comparison.Equal, Literal(outcome))
    case _ => Unknown
  }

  /**
   * Every row of a file has its partition values: the expression itself is evaluated, and null is neither outcome.
   */
  private def onPartitionValues(e: Expression, outcome: Boolean): Expression = {
    val overFile = e.transformUp {
      case r: RuntimeReplaceable => r.replacement
      case a: Attribute => field(FileField.Partition(schema.partitionColumn(a).get))
    }
    EqualNullSafe(overFile, Literal(outcome))
  }

  private def nullness(column: Expression, isNull: Boolean): Expression =
    boundsOf(column).map(_.leaf).orElse(countedLeaf(column)) match {
      case Some(leaf) if isNull => rules.isNull(leaf)
      case Some(leaf) => rules.isNotNull(leaf)
      case None => Unknown
    }

  private def countedLeaf(column: Expression): Option[LeafColumn] =
    schema.leafColumn(column).filter(SkippingRules.hasNullCount)

  private def compare(l: Expression, op: Comparison, r: Expression): Expression =
    (boundsOf(l), constant(r)) match {
      case (Some(bounds), Some(value)) => compare(bounds, op, value)
      case _ =>
        (constant(l), boundsOf(r)) match {
          case (Some(value), Some(bounds)) => compare(bounds, op.flipped, value)
          case (None, Some(bounds)) if constant(r).isEmpty =>
            compareColumns(boundsOf(l), op, bounds)
          case _ => Unknown
        }
    }

  private def compare(bounds: Bounds, op: Comparison, value: Literal): Expression =
    if (value.value == null) Never
    else if (comparable(bounds, value)) rules.compare(bounds, op, value)
    else Unknown

  private def compareColumns(left: Option[Bounds], op: Comparison, right: Bounds): Expression =
    left match {
      case Some(bounds) if bounds.dataType == right.dataType =>
        rules.compareColumns(bounds, op, right)
      case _ => Unknown
    }

  private def comparable(bounds: Bounds, value: Literal): Boolean =
    (bounds.dataType, value.dataType) match {
      case (_: DecimalType, _: DecimalType) => true
      case (left, right) => left == right
    }

  /**
   * `column <=> NULL` is IS NULL; with another constant, or a column, it is `=`, but true where both
   * sides are null and false where one is.
   */
  private def nullSafeEqual(l: Expression, r: Expression, outcome: Boolean): Expression = {
    val sides = constant(r).map(l -> _).orElse(constant(l).map(r -> _))
    sides match {
      case Some((column, value)) if value.value == null => nullness(column, isNull = outcome)
      case Some((column, value)) if outcome => compare(column, Comparison.Equal, value)
      case Some((column, value)) =>
        or(nullness(column, isNull = true), compare(column, Comparison.NotEqual, value))
      case None if outcome =>
        val bothNull = and(nullness(l, isNull = true), nullness(r, isNull = true))
        or(bothNull, compare(l, Comparison.Equal, r))
      case None =>
        val oneNull = or(nullness(l, isNull = true), nullness(r, isNull = true))
        or(oneNull, compare(l, Comparison.NotEqual, r))
    }
  }

  /**
   * A null in the list leaves the true rows as they are, and makes false ones null: then none is
   * false. Spark's InSet calls NaN rows false all the same, and an empty list is false even for
   * null rows.
   */
  private def inConstants(column: Expression, list: Seq[Expression], outcome: Boolean): Expression =
    (boundsOf(column), constants(list)) match {
      case (Some(bounds), Some(values)) if values.forall(v => comparable(bounds, v)) =>
        val (nulls, nonNull) = values.partition(_.value == null)
        if (outcome) { if (nonNull.isEmpty) Never else rules.in(bounds, nonNull) }
        else if (values.isEmpty || (nulls.nonEmpty && bounds.mayHoldNaN)) Unknown
        else if (nulls.nonEmpty) Never
        else rules.notIn(bounds, nonNull)
      case _ => Unknown
    }

  private def constants(list: Seq[Expression]): Option[Seq[Literal]] = {
    val found = list.flatMap(constant(_))
    if (found.size == list.size) Some(found) else None
  }

  private def startsWith(column: Expression, prefix: Expression, outcome: Boolean): Expression =
    (boundsOf(column), constant(prefix)) match {
      case (Some(bounds), Some(Literal(p, StringType))) if bounds.dataType == StringType =>
        p match {
          case p: UTF8String if outcome => rules.startsWith(bounds, p)
          case p: UTF8String => rules.startsNotWith(bounds, p)
          case _ => Never
        }
      case _ => Unknown
    }

  private def like(column: Expression, pattern: Expression, escape: Char): Expression =
    constant(pattern) match {
      case Some(Literal(p: UTF8String, StringType)) =>
        val prefix = SkippingRules.likePrefix(p.toString, escape)
        startsWith(column, Literal(UTF8String.fromString(prefix), StringType), outcome = true)
      case _ => Unknown
    }

  /** None if the constant cannot be evaluated, or not yet. */
  private def constant(e: Expression): Option[Literal] = e match {
    case l: Literal => Some(l)
    case _ if e.resolved && e.foldable && e.deterministic =>
      try Some(Literal(e.eval(), e.dataType))
      catch { case NonFatal(_) => None }
    case _ => None
  }

  private def boundsOf(e: Expression): Option[Bounds] = e match {
    case functions(argument, bounds) if e.resolved => boundsOf(argument).flatMap(bounds)
    case _ =>
      schema.leafColumn(e).filter(StoredBound.of(_).isDefined).map { leaf =>
        val mayHoldNaN = leaf.dataType == FloatType || leaf.dataType == DoubleType
        Bounds(leaf, field(FileField.Min(leaf)), field(FileField.Max(leaf)), mayHoldNaN)
      }
  }
}

private[skipping] object SkippingRules {

  /** The predicate doubles with each choice, so it is not built for more than these. */
  private val MostChoices = 8

  /**
   * A predicate on `coalesce(a, b, ...)` is the predicate on `a` where that is not null, and the one on
   * `coalesce(b, ...)` where it is. This does not apply if the choices reference a lambda variable,
   * which has many values in one row.
   */
  object Fallback {

    /** The predicate on the first choice, that choice, and the predicate on the others. */
    def unapply(e: Expression): Option[(Expression, Expression, Expression)] =
      if (!e.deterministic) None
      else {
        val all = e.collect { case c: Coalesce if !c.exists(isVariable) => c }
        all.headOption.filter(_ => all.map(_.children.size).sum <= MostChoices).map { c =>
          def on(choice: Expression): Expression =
            e.transformDown { case same: Coalesce if same == c => choice }
          val rest = if (c.children.size == 2) c.children(1) else Coalesce(c.children.tail)
          (
            on(c.children.head),
            c.children.head,
            if (c.children.size == 1) on(c.children.head) else on(rest)
          )
        }
      }
  }

  private def isVariable(e: Expression): Boolean = e.isInstanceOf[NamedLambdaVariable]

  /** Writers disagree on what a null count of an array or a map counts. */
  def hasNullCount(leaf: LeafColumn): Boolean = leaf.dataType match {
    case _: ArrayType | _: MapType | _: VariantType => false
    case _ => true
  }

  /**
   * The prefix of every match of a LIKE pattern: the pattern up to its first wildcard. A pattern
   * that Spark rejects matches nothing. LIKE sees U+FFFD in place of bytes that are not UTF-8, so
   * the prefix ends before one.
   */
  def likePrefix(pattern: String, escape: Char): String = {
    val prefix = new StringBuilder
    var i = 0
    while (i < pattern.length) {
      val escaped = pattern.charAt(i) == escape && i + 1 < pattern.length
      val c = if (escaped) pattern.charAt(i + 1) else pattern.charAt(i)
      if (c == '\uFFFD' || (!escaped && (c == '%' || c == '_'))) return prefix.toString
      prefix.append(c)
      i += (if (escaped) 2 else 1)
    }
    prefix.toString
  }
}
