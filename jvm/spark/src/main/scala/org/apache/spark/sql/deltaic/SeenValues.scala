package org.apache.spark.sql.deltaic

import java.io.ObjectOutputStream
import java.util.{HashSet => JHashSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.{
  And,
  Expression,
  GreaterThanOrEqual,
  In,
  LessThanOrEqual,
  Literal
}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.AccumulatorV2

/**
 * The values that rows had at a place of a plan, as far as they are few, and else the least and the
 * greatest. Those of tasks that ran again are among them. Nulls are left out.
 */
final class SeenValues private (dataType: DataType, asked: Ordering[Any])
    extends AccumulatorV2[Any, SeenValues.Summary] {

  /** Null once there are too many. */
  private var few: JHashSet[Any] = new JHashSet[Any]
  private var least: Any = _
  private var greatest: Any = _

  /**
   * Asked for where the values are made, by a thread that has a session: what tasks found is merged, and
   * copied, by Spark's scheduler, whose thread must not ask for settings.
   */
  @transient private var known: Ordering[Any] = asked

  /** In a task it is asked for again. */
  private def ordering: Ordering[Any] = {
    if (known == null) known = SeenValues.orderingOf(dataType)
    known
  }

  override def add(value: Any): Unit = if (value != null) synchronized {
    if (few != null && !few.contains(value)) {
      if (few.size < SeenValues.MaxValues && SeenValues.isShort(value))
        few.add(SeenValues.owned(value))
      else few = null
    }
    if (least == null || ordering.lt(value, least)) least = SeenValues.owned(value)
    if (greatest == null || ordering.gt(value, greatest)) greatest = SeenValues.owned(value)
  }

  override def merge(other: AccumulatorV2[Any, SeenValues.Summary]): Unit = {
    val theirs = other.value
    synchronized {
      theirs.few.fold { few = null }(_.foreach(add))
      theirs.bounds.foreach { case (low, high) =>
        add(low)
        add(high)
      }
    }
  }

  override def value: SeenValues.Summary = synchronized {
    SeenValues.Summary(
      Option(few).map(_.asScala.toSet),
      Option.when(least != null)((least, greatest))
    )
  }

  override def isZero: Boolean = synchronized(least == null)

  override def reset(): Unit = synchronized {
    few = new JHashSet[Any]
    least = null
    greatest = null
  }

  override def copy(): SeenValues = {
    val same = new SeenValues(dataType, ordering)
    same.merge(this)
    same
  }

  /** What holds of `column` if it equals one of the values. */
  def contain(column: Expression): Expression = value match {
    case SeenValues.Summary(_, None) => Literal.FalseLiteral
    case SeenValues.Summary(Some(all), _) if !comparesLoosely =>
      In(column, all.toSeq.map(Literal(_, dataType)))
    case SeenValues.Summary(_, Some((low, high))) =>
      And(
        GreaterThanOrEqual(column, Literal(low, dataType)),
        LessThanOrEqual(column, Literal(high, dataType))
      )
  }

  /** Whether different values may be equal, as 0.0 and -0.0 are. */
  private def comparesLoosely: Boolean = dataType match {
    case FloatType | DoubleType => true
    case _ => false
  }

  /** Executors report what they have so far while a task goes on adding. */
  private def writeObject(out: ObjectOutputStream): Unit = synchronized(out.defaultWriteObject())
}

object SeenValues {

  /** @param bounds none if there were no values */
  final case class Summary(few: Option[Set[Any]], bounds: Option[(Any, Any)])

  /** To be filled by tasks. */
  def apply(spark: SparkSession, dataType: DataType): SeenValues = {
    val seen = of(dataType)
    spark.sparkContext.register(seen)
    seen
  }

  def of(dataType: DataType): SeenValues = new SeenValues(dataType, orderingOf(dataType))

  private def orderingOf(dataType: DataType): Ordering[Any] =
    TypeUtils.getInterpretedOrdering(dataType)

  val MaxValues: Int = 1000
  private val MaxBytes = 256

  private def isShort(value: Any): Boolean = value match {
    case text: UTF8String => text.numBytes <= MaxBytes
    case _ => true
  }

  /** A row's text lies in memory that the next row is written to. */
  private def owned(value: Any): Any = value match {
    case text: UTF8String => text.copy()
    case other => other
  }
}
