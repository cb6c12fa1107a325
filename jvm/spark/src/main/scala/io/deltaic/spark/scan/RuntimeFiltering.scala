package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.connector.expressions.filter.{And => V2And, Predicate}
import org.apache.spark.sql.connector.expressions.{
  Expression => V2Expression,
  Literal => V2Literal,
  NamedReference
}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * What a query learns while it runs, such as the keys of the other side of a join, and uses to leave out
 * files of a scan.
 *
 * Spark hands over predicates by `filter` and asks for a batch right after, on the same thread. One scan
 * may stand in several places of a plan, with filters in one place and without them in another, so
 * predicates hold for the very next batch of that thread alone and the scan itself stays as it was.
 */
private[scan] final class RuntimeFiltering(schema: TableSchema, readSchema: StructType) {

  private val pushed = new ThreadLocal[Seq[Expression]]

  /** Columns by which files can be left out, among those the scan returns: see `PartitionPruning`. */
  lazy val attributes: Array[NamedReference] = readSchema.fields.collect {
    case field
        if schema.all.fieldNames.contains(field.name) &&
        FileSelection.canSkipBy(attribute(field.name), schema.skipping) =>
      SchemaShims.reference(field.name)
  }

  def push(predicates: Seq[Predicate]): Unit = pushed.set(predicates.flatMap(toCatalyst))

  /** The predicates pushed on this thread since it last asked. */
  def take(): Option[Seq[Expression]] = {
    val taken = Option(pushed.get)
    pushed.remove()
    taken
  }

  /** Those of the files that may hold a row for which all predicates are true. */
  def prune(
      files: IndexedSeq[AddFile],
      predicates: Seq[Expression],
      zone: ZoneId
  ): IndexedSeq[AddFile] =
    if (predicates.isEmpty || files.isEmpty) files
    else {
      val columns = SnapshotStatistics.ofFiles(files, schema.skipping, zone)
      FileSelection.select(columns, predicates).files.toIndexedSeq.map(files)
    }

  private def attribute(name: String): AttributeReference =
    AttributeReference(name, schema.all(name).dataType)()

  /** What is not understood leaves out nothing: the join or the filter above still decides. */
  private def toCatalyst(predicate: Predicate): Seq[Expression] = predicate match {
    case and: V2And => Seq(and.left, and.right).flatMap(toCatalyst)
    case _ =>
      (predicate.name, predicate.children.toList) match {
        case ("IN", column(attribute) :: literals(values)) =>
          Seq(InSet(attribute, values.map(_.value).toSet))
        case ("=", column(attribute) :: literal(value) :: Nil) => Seq(EqualTo(attribute, value))
        case ("<", column(attribute) :: literal(value) :: Nil) => Seq(LessThan(attribute, value))
        case ("<=", column(attribute) :: literal(value) :: Nil) =>
          Seq(LessThanOrEqual(attribute, value))
        case (">", column(attribute) :: literal(value) :: Nil) =>
          Seq(GreaterThan(attribute, value))
        case (">=", column(attribute) :: literal(value) :: Nil) =>
          Seq(GreaterThanOrEqual(attribute, value))
        case _ => Nil
      }
  }

  private object column {
    def unapply(expression: V2Expression): Option[AttributeReference] = expression match {
      case named: NamedReference if named.fieldNames.length == 1 =>
        Option.when(schema.all.fieldNames.contains(named.fieldNames.head))(
          attribute(named.fieldNames.head)
        )
      case _ => None
    }
  }

  private object literal {
    def unapply(expression: V2Expression): Option[Literal] = expression match {
      case value: V2Literal[_] => Some(Literal(value.value, value.dataType))
      case _ => None
    }
  }

  private object literals {
    def unapply(expressions: List[V2Expression]): Option[List[Literal]] = {
      val found = expressions.collect { case literal(value) => value }
      Option.when(found.size == expressions.size)(found)
    }
  }
}

/** The batch of a scan without the files that were left out at run time. */
private[scan] final class FilteredBatch(scan: TableScan, files: IndexedSeq[AddFile])
    extends Batch {
  override def planInputPartitions(): Array[InputPartition] = scan.planInputPartitions(files)
  override def createReaderFactory(): PartitionReaderFactory = scan.createReaderFactory()
}
