package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/**
 * Partition columns generated from the parts of one time column: its year and, in turn, month, day
 * and hour. They are monotone only in combination.
 */
private[scan] final class GeneratedClock(
    base: AttributeReference,
    hands: Seq[GeneratedColumnFilters]
) {

  /** All hands are evaluated at the same time, so all are shifted or none is. */
  private val shift = if (hands.exists(_.isLocal)) 1 else 0

  def of(filter: Expression): Option[Expression] = filter match {
    case And(left, right) => (of(left) ++ of(right)).reduceOption(And(_, _))
    case Or(left, right) => for (l <- of(left); r <- of(right)) yield Or(l, r)
    case BaseColumnValues(name, comparison) if name == base.name =>
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
      hand.image(v, direction * shift).filter(_.value != null).map(attribute(hand) -> _)
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

  private def attribute(hand: GeneratedColumnFilters): AttributeReference =
    AttributeReference(hand.column.name, hand.column.dataType)()
}

private[scan] object GeneratedClock {

  /** @param rank 0 for the year, 1 for the month, 2 for the day, 3 for the hour */
  private final case class Hand(rank: Int, time: Expression, column: GeneratedColumnFilters)

  /** Only hands of the same time make a clock: `year(trunc(d, 'week'))` lags behind `month(d)`. */
  def of(columns: Seq[GeneratedColumnFilters]): Seq[GeneratedClock] =
    columns.flatMap(hand(_)).groupBy(_.time.canonicalized).values.toSeq.flatMap { ofTime =>
      val found = (0 to 3).map(rank => ofTime.find(_.rank == rank))
      val chain = found.takeWhile(_.isDefined).flatten.map(_.column)
      Option.when(chain.length > 1)(new GeneratedClock(chain.head.base, chain))
    }

  private def hand(column: GeneratedColumnFilters): Option[Hand] = {
    val matched = withoutWidening(column.value) match {
      case Year(time) => Some((0, time))
      case Month(time) => Some((1, time))
      case DayOfMonth(time) => Some((2, time))
      case Hour(time, _) => Some((3, time))
      case _ => None
    }
    matched.collect {
      case (rank, time) if GeneratedColumnFilters.ascends(time) =>
        Hand(rank, withoutDate(time), column)
    }
  }

  /** Strings do not sort as the numbers they represent: '9' is larger than '10'. */
  private def withoutWidening(value: Expression): Expression = value match {
    case cast: Cast
        if isIntegral(cast.child.dataType) && isIntegral(cast.dataType) &&
        Cast.canUpCast(cast.child.dataType, cast.dataType) => cast.child
    case _ => value
  }

  /** `year(ts)` is the year of a date of `ts`, but `hour(ts)` of `ts` itself. */
  private def withoutDate(time: Expression): Expression = time match {
    case cast: Cast if cast.dataType == DateType && isTimestamp(cast.child.dataType) => cast.child
    case _ => time
  }

  private def isTimestamp(dataType: DataType): Boolean =
    dataType == TimestampType || dataType == TimestampNTZType

  private def isIntegral(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }
}
