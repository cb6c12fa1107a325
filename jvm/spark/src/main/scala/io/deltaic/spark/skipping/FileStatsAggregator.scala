package io.deltaic.spark.skipping

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.{LeafColumn, PartitionColumn}

/** An aggregate over the rows of some files, which the log may be able to provide. */
private[spark] sealed trait RowAggregate

private[spark] object RowAggregate {
  case object CountRows extends RowAggregate

  /** Counts the rows where the column is not null. */
  final case class CountValues(column: Expression) extends RowAggregate
  final case class Min(column: Expression) extends RowAggregate
  final case class Max(column: Expression) extends RowAggregate
}

/**
 * Computes aggregates over the live rows of some files from the log.
 *
 * A result is exact or absent. The row count is `numRecords`, which counts the records of the data
 * file, minus the cardinality of the deletion vector. Bounds are used only if they are values of
 * live rows: tight, of a file without a deletion vector, and of a type that writers neither
 * truncate nor round. The null count of any other file is used only if none or all of the records
 * are null (Protocol § Per-file Statistics).
 *
 * @param files ordinals, ascending
 * @param deletedRows the cardinality of the file's deletion vector
 */
private[spark] final class FileStatsAggregator(
    columns: FileStatsColumns,
    val files: Array[Int],
    deletedRows: Int => Long
) {
  import FileStatsAggregator._

  /** The same for some of these files. */
  def of(some: Array[Int]): FileStatsAggregator =
    new FileStatsAggregator(columns, some, deletedRows)

  /** None if the statistics of the file are missing or impossible. */
  def live(file: Int): Option[Long] =
    columns.numRecords(file).map(_ - deletedRows(file)).filter(_ >= 0)

  /** The live rows of all files; none if any file has no record count. */
  lazy val total: Option[Long] =
    aggregate(Nil, Seq(RowAggregate.CountRows)).map(_.head(0).asInstanceOf[Long])

  /**
   * The aggregates of each group of rows. Without grouping there is exactly one row, even for no files.
   *
   * @param groupBy partition columns
   * @return for each group its columns, then its aggregates, as Catalyst values; none if the
   *   statistics of a file are insufficient
   */
  def aggregate(
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    for {
      keys <- all(groupBy.map(keyColumn))
      terms <- all(aggregates.map(term))
      groups <- fold(keys, terms)
    } yield groups.map { case (key, states) => (key ++ states.map(_.result)).toArray }

  private def fold(
      keys: Seq[PartitionColumn],
      terms: Seq[Term]
  ): Option[Seq[(Seq[Any], Seq[AggregateState])]] = {
    val fields = keys.map(FileField.Partition(_)) ++ terms.flatMap(_.fields) :+ FileField.NumRecords
    val distinct = fields.distinct
    val row = columns.row(distinct, files)
    val ordinalOf = distinct.zipWithIndex.toMap
    val groups = mutable.LinkedHashMap.empty[Seq[Any], Seq[AggregateState]]
    if (keys.isEmpty) groups(Nil) = terms.map(_.newState())
    val numRecords = ordinalOf(FileField.NumRecords)

    def value(field: FileField): Any = row.get(ordinalOf(field), field.dataType)

    def includes(file: Int): Boolean = {
      row.file = file
      val deleted = deletedRows(file)
      !row.isNullAt(numRecords) && {
        val rows = FileCounts(row.getLong(numRecords), deleted)
        // A file of which all rows are deleted does not affect groups and bounds.
        rows.live == 0 || (rows.live > 0 && {
          val states = groups.getOrElseUpdate(
            keys.map(k => value(FileField.Partition(k))),
            terms.map(_.newState())
          )
          states.forall(_.include(rows, value, () => deleted == 0 && columns.tightBounds(file)))
        })
      }
    }
    try if (files.forall(includes)) Some(groups.toSeq) else None
    // A partition value that cannot be parsed; reading the file reports it.
    catch { case NonFatal(_) => None }
  }

  private def keyColumn(column: Attribute): Option[PartitionColumn] =
    columns.schema.partitionColumn(column).filter(c => isGroupable(c.dataType))

  private def term(aggregate: RowAggregate): Option[Term] = aggregate match {
    case RowAggregate.CountRows => Some(CountRowsTerm)
    case RowAggregate.CountValues(column) =>
      partition(column).map(p => CountPartitionTerm(FileField.Partition(p)))
        .orElse(countedLeaf(column).map(l => CountLeafTerm(FileField.NullCount(l))))
    case RowAggregate.Min(column) => bound(column, isMin = true)
    case RowAggregate.Max(column) => bound(column, isMin = false)
  }

  private def bound(column: Expression, isMin: Boolean): Option[Term] =
    partition(column).filter(p => isGroupable(p.dataType) || isFloating(p.dataType))
      .map(p => PartitionBoundTerm(FileField.Partition(p), isMin))
      .orElse(
        columns.schema.leafColumn(column).filter(hasExactBounds).map(LeafBoundTerm(_, isMin))
      )

  private def partition(column: Expression): Option[PartitionColumn] = column match {
    case attribute: Attribute => columns.schema.partitionColumn(attribute)
    case _ => None
  }

  private def countedLeaf(column: Expression): Option[LeafColumn] =
    columns.schema.leafColumn(column).filter(SkippingRules.hasNullCount)
}

private object FileStatsAggregator {

  /** @param records rows in the data file, deleted ones included */
  final case class FileCounts(records: Long, deleted: Long) {
    def live: Long = records - deleted
  }

  /** Whether values that Spark groups together are equal keys here, unlike floats and bytes. */
  def isGroupable(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType => true
    case DateType | TimestampType | TimestampNTZType | StringType => true
    case _: DecimalType => true
    case _ => false
  }

  def isFloating(dataType: DataType): Boolean = dataType == FloatType || dataType == DoubleType

  /**
   * Strings may be truncated and timestamps rounded, floating-point bounds leave out NaN, and decimals of more
   * than 15 digits may have passed through doubles: see [[StoredBound]].
   */
  def hasExactBounds(leaf: LeafColumn): Boolean = leaf.dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | BooleanType => true
    case d: DecimalType => d.precision <= 15
    case _ => false
  }

  def all[T](options: Seq[Option[T]]): Option[Seq[T]] =
    if (options.forall(_.isDefined)) Some(options.flatten) else None

  /** An aggregate over files: the fields it reads of each, and how it combines them. */
  sealed trait Term {
    def fields: Seq[FileField]
    def newState(): AggregateState
  }

  sealed trait AggregateState {
    def result: Any

    /** Adds a file that has rows; false if its statistics are insufficient. */
    def include(rows: FileCounts, value: FileField => Any, isTight: () => Boolean): Boolean
  }

  case object CountRowsTerm extends Term {
    override def fields: Seq[FileField] = Nil
    override def newState(): AggregateState = new Counting((rows, _, _) => Some(rows.live))
  }

  final case class CountPartitionTerm(field: FileField) extends Term {
    override def fields: Seq[FileField] = Seq(field)
    override def newState(): AggregateState =
      new Counting((rows, value, _) => Some(if (value(field) == null) 0L else rows.live))
  }

  final case class CountLeafTerm(nulls: FileField) extends Term {
    override def fields: Seq[FileField] = Seq(nulls)
    override def newState(): AggregateState = new Counting((rows, value, isTight) =>
      value(nulls) match {
        case 0L => Some(rows.live)
        case n: Long if n == rows.records => Some(0L)
        case n: Long if n < rows.records && isTight() => Some(rows.records - n)
        case _ => None
      }
    )
  }

  final class Counting(count: (FileCounts, FileField => Any, () => Boolean) => Option[Long])
      extends AggregateState {
    private var sum = 0L
    override def result: Any = sum
    override def include(
        rows: FileCounts,
        value: FileField => Any,
        isTight: () => Boolean
    ): Boolean = {
      val counted = count(rows, value, isTight)
      counted.foreach(n => sum += n)
      counted.isDefined
    }
  }

  final case class PartitionBoundTerm(field: FileField, isMin: Boolean) extends Term {
    override def fields: Seq[FileField] = Seq(field)
    override def newState(): AggregateState =
      new Extreme(field.dataType, isMin, (_, value, _) => Known(value(field)))
  }

  final case class LeafBoundTerm(leaf: LeafColumn, isMin: Boolean) extends Term {
    private val bound = if (isMin) FileField.Min(leaf) else FileField.Max(leaf)
    private val nulls = FileField.NullCount(leaf)
    override def fields: Seq[FileField] = Seq(bound, nulls)
    override def newState(): AggregateState = new Extreme(leaf.dataType, isMin, ofFile)

    private def ofFile(
        rows: FileCounts,
        value: FileField => Any,
        isTight: () => Boolean
    ): Knowledge =
      if (value(nulls) == rows.records) Known(null)
      else if (value(bound) == null || !isTight()) Open
      else Known(value(bound))
  }

  sealed trait Knowledge
  case object Open extends Knowledge

  /** @param value null if the file has only nulls */
  final case class Known(value: Any) extends Knowledge

  final class Extreme(
      dataType: DataType,
      isMin: Boolean,
      ofFile: (FileCounts, FileField => Any, () => Boolean) => Knowledge
  ) extends AggregateState {
    private val ordering: Ordering[Any] = {
      val natural = TypeUtils.getInterpretedOrdering(dataType)
      if (isMin) natural else natural.reverse
    }
    private var extreme: Any = _

    override def result: Any = extreme
    override def include(
        rows: FileCounts,
        value: FileField => Any,
        isTight: () => Boolean
    ): Boolean = ofFile(rows, value, isTight) match {
      case Open => false
      case Known(found) =>
        if (found != null && (extreme == null || ordering.lt(found, extreme))) extreme = found
        true
    }
  }
}
