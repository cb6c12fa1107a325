package io.deltaic.spark.skipping

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/** Something that can be computed of the rows of some files, and perhaps told from the log. */
private[spark] sealed trait RowAggregate

private[spark] object RowAggregate {
  case object CountRows extends RowAggregate

  /** Of those rows where the column is not null. */
  final case class CountValues(column: Expression) extends RowAggregate
  final case class Least(column: Expression) extends RowAggregate
  final case class Greatest(column: Expression) extends RowAggregate
}

/**
 * What the log says of the rows of some files, deleted rows not counted.
 *
 * An answer is exact or is not given. Rows are counted by `numRecords`, which counts those of the data
 * file, less the cardinality of the deletion vector. Bounds count only if they are values of the rows:
 * tight, of a file without a deletion vector, and of a type that writers neither cut nor round. A null
 * count of any other file says something of its rows only if none or all of the records are null
 * (Protocol § Per-file Statistics).
 *
 * @param files ordinals, ascending
 * @param deletedRows how many rows the file's deletion vector marks
 */
private[spark] final class FileRows(
    columns: FileStatsColumns,
    val files: Array[Int],
    deletedRows: Int => Long
) {
  import FileRows._

  /** The same of some of these files. */
  def of(some: Array[Int]): FileRows = new FileRows(columns, some, deletedRows)

  /** None for a file that does not say, or that says what cannot be. */
  def live(file: Int): Option[Long] =
    columns.numRecords(file).map(_ - deletedRows(file)).filter(_ >= 0)

  /** Of all files together; none unless each of them says. */
  lazy val total: Option[Long] =
    aggregate(Nil, Seq(RowAggregate.CountRows)).map(_.head(0).asInstanceOf[Long])

  /**
   * The aggregates of each group of rows, without groups of them all: one row even of no files.
   *
   * @param groupBy partition columns
   * @return for each group its columns, then its aggregates, as Catalyst values; none if a file leaves
   *   anything open
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
        // A file of which all rows are deleted has no say in groups and bounds.
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
    // A partition value that cannot be read: whoever reads the file will say so.
    catch { case NonFatal(_) => None }
  }

  private def keyColumn(column: Attribute): Option[PartitionColumn] =
    columns.schema.partitionColumn(column).filter(c => isGroupable(c.dataType))

  private def term(aggregate: RowAggregate): Option[Term] = aggregate match {
    case RowAggregate.CountRows => Some(CountRowsTerm)
    case RowAggregate.CountValues(column) =>
      partition(column).map(p => CountPartitionTerm(FileField.Partition(p)))
        .orElse(countedLeaf(column).map(l => CountLeafTerm(FileField.NullCount(l))))
    case RowAggregate.Least(column) => bound(column, least = true)
    case RowAggregate.Greatest(column) => bound(column, least = false)
  }

  private def bound(column: Expression, least: Boolean): Option[Term] =
    partition(column).filter(p => isGroupable(p.dataType) || isFloating(p.dataType))
      .map(p => PartitionBoundTerm(FileField.Partition(p), least))
      .orElse(
        columns.schema.leafColumn(column).filter(hasExactBounds).map(LeafBoundTerm(_, least))
      )

  private def partition(column: Expression): Option[PartitionColumn] = column match {
    case attribute: Attribute => columns.schema.partitionColumn(attribute)
    case _ => None
  }

  private def countedLeaf(column: Expression): Option[LeafColumn] =
    columns.schema.leafColumn(column).filter(SkippingRules.hasNullCount)
}

private object FileRows {

  /** @param records rows in the data file, deleted ones included */
  final case class FileCounts(records: Long, deleted: Long) {
    def live: Long = records - deleted
  }

  /** Equal values are one group for Spark and one key for us; not so with floats and bytes. */
  def isGroupable(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType => true
    case DateType | TimestampType | TimestampNTZType | StringType => true
    case _: DecimalType => true
    case _ => false
  }

  def isFloating(dataType: DataType): Boolean = dataType == FloatType || dataType == DoubleType

  /**
   * Strings may be cut and timestamps rounded, floating-point bounds leave out NaN, and decimals of more
   * than 15 digits may have passed through doubles: see [[StoredBound]].
   */
  def hasExactBounds(leaf: LeafColumn): Boolean = leaf.dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | BooleanType => true
    case d: DecimalType => d.precision <= 15
    case _ => false
  }

  def all[T](options: Seq[Option[T]]): Option[Seq[T]] =
    if (options.forall(_.isDefined)) Some(options.flatten) else None

  /** An aggregate over files: what it reads of each, and how it adds it up. */
  sealed trait Term {
    def fields: Seq[FileField]
    def newState(): AggregateState
  }

  sealed trait AggregateState {
    def result: Any

    /** Adds a file that has rows; false if it leaves the result open. */
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

  final case class PartitionBoundTerm(field: FileField, least: Boolean) extends Term {
    override def fields: Seq[FileField] = Seq(field)
    override def newState(): AggregateState =
      new Extreme(field.dataType, least, (_, value, _) => Known(value(field)))
  }

  final case class LeafBoundTerm(leaf: LeafColumn, least: Boolean) extends Term {
    private val bound = if (least) FileField.Min(leaf) else FileField.Max(leaf)
    private val nulls = FileField.NullCount(leaf)
    override def fields: Seq[FileField] = Seq(bound, nulls)
    override def newState(): AggregateState = new Extreme(leaf.dataType, least, ofFile)

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

  /** @param value null where the file has no value at all */
  final case class Known(value: Any) extends Knowledge

  final class Extreme(
      dataType: DataType,
      least: Boolean,
      ofFile: (FileCounts, FileField => Any, () => Boolean) => Knowledge
  ) extends AggregateState {
    private val ordering: Ordering[Any] = {
      val natural = TypeUtils.getInterpretedOrdering(dataType)
      if (least) natural else natural.reverse
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
