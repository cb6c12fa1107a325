package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.deltaic.scan.RuntimeFilterInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.replay.FileTable
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

/**
 * Skips files of a scan by values that become available while the query runs, such as the keys of
 * the other side of a join.
 *
 * Spark passes predicates to `filter` and calls `toBatch` right after, on the same thread. One scan
 * may occur several times in a plan, with filters in one place and without them in another, so
 * predicates apply only to the next batch of that thread and the scan itself is unchanged.
 */
private[scan] final class RuntimeFiltering(schema: TableSchema, readSchema: StructType) {

  private val pushed = new ThreadLocal[Seq[Expression]]

  /** The returned columns by which files can be skipped: see `PartitionPruning`. */
  lazy val columns: Seq[AttributeReference] = {
    val ofTable = schema.all.fieldNames.toSet
    readSchema.fieldNames.toSeq.filter(ofTable).map(attribute)
      .filter(FileSelection.canSkipBy(_, schema.skipping))
  }

  def push(predicates: Seq[Predicate]): Unit = pushed.set(predicates.flatMap(toCatalyst))

  /** The predicates pushed on this thread since the last call. */
  def take(): Option[Seq[Expression]] = {
    val taken = Option(pushed.get)
    pushed.remove()
    taken
  }

  /**
   * The files that may contain a row for which all predicates are true.
   *
   * @param filesInMemory the files they were selected from, whose statistics are decoded
   */
  def prune(
      files: IndexedSeq[AddFile],
      filesInMemory: Option[FileTable],
      predicates: Seq[Expression],
      zone: ZoneId
  ): IndexedSeq[AddFile] =
    if (predicates.isEmpty || files.isEmpty) files
    else {
      val columns = filesInMemory
        .flatMap(SnapshotStatistics.among(_, files, schema.skipping, zone))
        .getOrElse(SnapshotStatistics.ofFiles(files, schema.skipping, zone))
      FileSelection.select(columns, predicates).files.toIndexedSeq.map(files)
    }

  private def attribute(name: String): AttributeReference =
    AttributeReference(name, schema.all(name).dataType)()

  /** Predicates that cannot be translated skip no files: the join or the filter above still applies. */
  private def toCatalyst(predicate: Predicate): Option[Expression] =
    RuntimeFilterInternals.toCatalyst(predicate).map(onColumns).filter(_.resolved)

  private def onColumns(predicate: Expression): Expression = predicate.transformUp {
    case UnresolvedAttribute(Seq(name)) if schema.all.fieldNames.contains(name) => attribute(name)
    // Keys of a join may be many: partition values are looked up in a set of them.
    case In(column, keys) if keys.forall(_.isInstanceOf[Literal]) =>
      InSet(column, keys.map(_.asInstanceOf[Literal].value).toSet)
  }
}

/** The batch of a scan without the files that were skipped at run time. */
private[scan] final class FilteredBatch(scan: TableScan, files: IndexedSeq[AddFile])
    extends Batch {
  override def planInputPartitions(): Array[InputPartition] = scan.planInputPartitions(files)
  override def createReaderFactory(): PartitionReaderFactory = scan.createReaderFactory()
}
