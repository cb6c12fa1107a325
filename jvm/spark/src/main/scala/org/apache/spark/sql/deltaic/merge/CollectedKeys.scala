package org.apache.spark.sql.deltaic.merge

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
 * Collects the values of rows at a point of a plan if they are few, otherwise their minimum and
 * maximum. Values of rerun tasks are included. Nulls are excluded.
 */
final class CollectedKeys private (dataType: DataType, driverOrdering: Ordering[Any])
    extends AccumulatorV2[Any, CollectedKeys.Summary] {

  /** Null if there are too many. */
  private var few: JHashSet[Any] = new JHashSet[Any]
  private var min: Any = _
  private var max: Any = _

  /**
   * Created on a thread that has a session, together with the accumulator: Spark's scheduler merges
   * and copies the values of tasks, and its thread must not read settings.
   */
  @transient private var currentOrdering: Ordering[Any] = driverOrdering

  /** In a task it is created again. */
  private def ordering: Ordering[Any] = {
    if (currentOrdering == null) currentOrdering = CollectedKeys.orderingOf(dataType)
    currentOrdering
  }

  override def add(value: Any): Unit = if (value != null) synchronized {
    if (few != null && !few.contains(value)) {
      if (few.size < CollectedKeys.MaxValues && CollectedKeys.isShort(value))
        few.add(CollectedKeys.owned(value))
      else few = null
    }
    if (min == null || ordering.lt(value, min)) min = CollectedKeys.owned(value)
    if (max == null || ordering.gt(value, max)) max = CollectedKeys.owned(value)
  }

  override def merge(other: AccumulatorV2[Any, CollectedKeys.Summary]): Unit = {
    val theirs = other.value
    synchronized {
      theirs.few.fold { few = null }(_.foreach(add))
      theirs.bounds.foreach { case (low, high) =>
        add(low)
        add(high)
      }
    }
  }

  override def value: CollectedKeys.Summary = synchronized {
    CollectedKeys.Summary(
      Option(few).map(_.asScala.toSet),
      Option.when(min != null)((min, max))
    )
  }

  override def isZero: Boolean = synchronized(min == null)

  override def reset(): Unit = synchronized {
    few = new JHashSet[Any]
    min = null
    max = null
  }

  override def copy(): CollectedKeys = {
    val same = new CollectedKeys(dataType, ordering)
    same.merge(this)
    same
  }

  /** A predicate that is true if `column` equals one of the values. */
  def contain(column: Expression): Expression = value match {
    case CollectedKeys.Summary(_, None) => Literal.FalseLiteral
    case CollectedKeys.Summary(Some(all), _) if !comparesLoosely =>
      In(column, all.toSeq.map(Literal(_, dataType)))
    case CollectedKeys.Summary(_, Some((low, high))) =>
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

  /** Executors send intermediate values in heartbeats while a task still adds values. */
  private def writeObject(out: ObjectOutputStream): Unit = synchronized(out.defaultWriteObject())
}

object CollectedKeys {

  /** @param bounds none if there were no values */
  final case class Summary(few: Option[Set[Any]], bounds: Option[(Any, Any)])

  /** To be filled by tasks. */
  def apply(spark: SparkSession, dataType: DataType): CollectedKeys = {
    val seen = of(dataType)
    spark.sparkContext.register(seen)
    seen
  }

  def of(dataType: DataType): CollectedKeys = new CollectedKeys(dataType, orderingOf(dataType))

  private def orderingOf(dataType: DataType): Ordering[Any] =
    TypeUtils.getInterpretedOrdering(dataType)

  val MaxValues: Int = 1000
  private val MaxBytes = 256

  private def isShort(value: Any): Boolean = value match {
    case string: UTF8String => string.numBytes <= MaxBytes
    case _ => true
  }

  /** A row's string is stored in memory that the next row overwrites. */
  private def owned(value: Any): Any = value match {
    case string: UTF8String => string.copy()
    case other => other
  }
}
