package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.deltaic.RuntimeFilterShims
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.replay.FileTable
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
  lazy val columns: Seq[AttributeReference] = {
    val ofTable = schema.all.fieldNames.toSet
    readSchema.fieldNames.toSeq.filter(ofTable).map(attribute)
      .filter(FileSelection.canSkipBy(_, schema.skipping))
  }

  def push(predicates: Seq[Predicate]): Unit = pushed.set(predicates.flatMap(toCatalyst))

  /** The predicates pushed on this thread since it last asked. */
  def take(): Option[Seq[Expression]] = {
    val taken = Option(pushed.get)
    pushed.remove()
    taken
  }

  /**
   * Those of the files that may hold a row for which all predicates are true.
   *
   * @param known the files they were chosen from, of which it is known what their statistics say
   */
  def prune(
      files: IndexedSeq[AddFile],
      known: Option[FileTable],
      predicates: Seq[Expression],
      zone: ZoneId
  ): IndexedSeq[AddFile] =
    if (predicates.isEmpty || files.isEmpty) files
    else {
      val columns = known
        .flatMap(SnapshotStatistics.among(_, files, schema.skipping, zone))
        .getOrElse(SnapshotStatistics.ofFiles(files, schema.skipping, zone))
      FileSelection.select(columns, predicates).files.toIndexedSeq.map(files)
    }

  private def attribute(name: String): AttributeReference =
    AttributeReference(name, schema.all(name).dataType)()

  /** What is not understood leaves out nothing: the join or the filter above still decides. */
  private def toCatalyst(predicate: Predicate): Option[Expression] =
    RuntimeFilterShims.toCatalyst(predicate).map(onColumns).filter(_.resolved)

  private def onColumns(predicate: Expression): Expression = predicate.transformUp {
    case UnresolvedAttribute(Seq(name)) if schema.all.fieldNames.contains(name) => attribute(name)
    // Keys of a join may be many: partition values are looked up in a set of them.
    case In(column, keys) if keys.forall(_.isInstanceOf[Literal]) =>
      InSet(column, keys.map(_.asInstanceOf[Literal].value).toSet)
  }
}

/** The batch of a scan without the files that were left out at run time. */
private[scan] final class FilteredBatch(scan: TableScan, files: IndexedSeq[AddFile])
    extends Batch {
  override def planInputPartitions(): Array[InputPartition] = scan.planInputPartitions(files)
  override def createReaderFactory(): PartitionReaderFactory = scan.createReaderFactory()
}
