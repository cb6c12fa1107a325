package io.deltaic.spark.scan.deletionvectors

import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.dv.{DeletionVector, DeletionVectorCursor, DeletionVectorStore}
import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.replay.VacuumedVersion

/**
 * Opens the deletion vectors of one table inside an executor.
 *
 * Two sources of the same table are equal, whatever broadcast carries their configuration: plans
 * that differ in nothing else must compare equal for exchange reuse.
 *
 * @param version the version that is read, for errors
 */
private[spark] final case class DeletionVectorSource(table: String)(
    val configuration: Broadcast[SerializableConfiguration],
    version: Option[Long] = None
) extends RowProbeSource {

  /** The vector that a [[DeletionVectorConstant]] describes, from this executor's cache if it is cached. */
  def open(constant: UTF8String): DeletionVector =
    try DeletionVectorSource.cache.get(DeletionVectorCache.Key(table, constant))(read)
    catch {
      case e: DeltaicThrowable if e.condition == "DELTAIC_DELETION_VECTOR_FILE_MISSING" =>
        throw version.fold(e) { v =>
          val file = e.parameters.getOrElse("location", "")
          VacuumedVersion.explain(table, v, file, configuration.value.value)(e)
        }
    }

  /**
   * Loads the vectors that a task is about to open. Neighboring vectors of a file are read in one
   * range; opening them one by one would need a request for each.
   */
  def prefetch(constants: Seq[UTF8String]): Unit =
    if (constants.lengthIs > 1)
      DeletionVectorSource.cache.prefetch(constants.map(DeletionVectorCache.Key(table, _)))(read)

  private def read(keys: Seq[DeletionVectorCache.Key]): Seq[Try[DeletionVector]] = {
    val store = new DeletionVectorStore(configuration.value.value)
    val wanted = keys.map { key =>
      val (descriptor, dataFile) = DeletionVectorConstant.decode(key.constant)
      dataFile -> descriptor
    }
    store.readAll(new Path(table), wanted)
  }

  override def probeClass: Class[DeletionVectorProbe] = classOf[DeletionVectorProbe]

  override def newProbe(): DeletionVectorProbe = new DeletionVectorProbe(this)
}

private[spark] object DeletionVectorSource {

  /** Share of the heap that cached vectors may use; an evicted vector is loaded again. */
  private val heapFraction = 0.1

  /** One per JVM: splits of a file and consecutive tasks share the loaded vector. */
  private val cache = new DeletionVectorCache((Runtime.getRuntime.maxMemory * heapFraction).toLong)
}

/**
 * Checks whether rows of a scan are deleted, in the order in which the scan reads them.
 *
 * Row indexes ascend within a split, so the probe caches the gap `[from, until)` without deleted
 * rows around the last row; the row at `until` is deleted. A live row costs one comparison of
 * references and two of numbers. The deleted row at the end of a gap moves the cursor to the end of
 * the next gap. Any other row, even one before the last, is looked up with the cursor.
 *
 * Not thread safe: one probe belongs to one task.
 */
private[spark] final class DeletionVectorProbe(source: DeletionVectorSource)
    extends RowProbe {
  private var lastReference: UTF8String = _
  private var lastValue: UTF8String = _
  private var cursor: DeletionVectorCursor = _
  private var from = 0L
  private var until = 0L

  override def isDeleted(constant: UTF8String, rowIndex: Long): Boolean = {
    if (constant ne lastReference) switchTo(constant)
    if (rowIndex < until && rowIndex >= from) false
    else if (rowIndex == until) endOfGap(rowIndex)
    else seek(rowIndex)
  }

  private def switchTo(constant: UTF8String): Unit = {
    // Row-based readers return a new string object for each row; a different value means a different file.
    if (!constant.equals(lastValue)) {
      lastValue = constant.clone()
      cursor = source.open(lastValue).cursor()
      from = 0L
      until = cursor.seek(0L)
    }
    lastReference = constant
  }

  private def endOfGap(deleted: Long): Boolean = {
    from = deleted + 1
    until = cursor.seek(from)
    true
  }

  private def seek(rowIndex: Long): Boolean = {
    from = rowIndex
    until = cursor.seek(rowIndex)
    until == rowIndex && endOfGap(rowIndex)
  }
}
