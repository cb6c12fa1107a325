package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions._

/**
 * Partition columns that together tell the time of one column: its year and, in turn, month, day and
 * hour. Only together do they ascend.
 */
private[scan] final class GeneratedClock(base: AttributeReference, hands: Seq[Generated]) {

  def of(filter: Expression): Option[Expression] = filter match {
    case And(left, right) => (of(left) ++ of(right)).reduceOption(And(_, _))
    case Or(left, right) => for (l <- of(left); r <- of(right)) yield Or(l, r)
    case BaseComparison(name, comparison) if name == base.name =>
      comparison match {
        case AtMost(v) => bound(v, +1)
        case AtLeast(v) => bound(v, -1)
        case Exactly(v) => for (low <- bound(v, -1); high <- bound(v, +1)) yield And(low, high)
        case _ => None
      }
    case _ => None
  }

  private def bound(v: Literal, direction: Int): Option[Expression] = {
    val images = hands.map { hand =>
      hand.image(hand.moved(v, direction)).filter(_.value != null).map(attribute(hand) -> _)
    }
    Option.when(images.forall(_.isDefined))(lexicographic(images.flatten, direction))
  }

  private def lexicographic(
      columns: Seq[(AttributeReference, Literal)],
      direction: Int
  ): Expression = {
    val (column, image) = columns.head
    if (columns.tail.isEmpty) {
      if (direction > 0) LessThanOrEqual(column, image) else GreaterThanOrEqual(column, image)
    } else {
      val within = if (direction > 0) LessThan(column, image) else GreaterThan(column, image)
      Or(within, And(EqualTo(column, image), lexicographic(columns.tail, direction)))
    }
  }

  private def attribute(hand: Generated): AttributeReference =
    AttributeReference(hand.column.name, hand.column.dataType)()
}

private[scan] object GeneratedClock {
  def of(columns: Seq[Generated]): Seq[GeneratedClock] =
    columns.groupBy(_.base.name).values.toSeq.flatMap { ofBase =>
      val hands = Seq[PartialFunction[Expression, Expression]](
        { case Year(time) => time },
        { case Month(time) => time },
        { case DayOfMonth(time) => time },
        { case Hour(time, _) => time }
      )
      val found = hands.map(hand => ofBase.find(c => timeIn(c, hand).exists(Generated.ascends)))
      val chain = found.takeWhile(_.isDefined).flatten
      Option.when(chain.length > 1)(new GeneratedClock(chain.head.base, chain))
    }

  private def timeIn(
      column: Generated,
      hand: PartialFunction[Expression, Expression]
  ): Option[Expression] = column.value match {
    case cast: Cast if Cast.canUpCast(cast.child.dataType, cast.dataType) => hand.lift(cast.child)
    case value => hand.lift(value)
  }
}
