package io.deltaic.spark.scan

import java.util.concurrent.ExecutionException

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.util.concurrent.UncheckedExecutionException
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.dv.{DeletionVector, DeletionVectorCursor, DeletionVectorStore}

/**
 * Opens the deletion vectors of one table inside an executor.
 *
 * Two sources of the same table are equal, whatever broadcast carries their configuration: plans
 * that differ in nothing else must compare equal for exchange reuse.
 */
private[spark] final case class DeletionVectorSource(table: String)(
    val configuration: Broadcast[SerializableConfiguration]
) extends RowProbeSource {

  /** The vector that a [[DeletionVectorConstant]] names, from this executor's cache if it is there. */
  def open(constant: UTF8String): DeletionVector = {
    val key = DeletionVectorSource.Key(table, constant)
    try
      DeletionVectorSource.cache.get(
        key,
        () => {
          val (descriptor, dataFile) = DeletionVectorConstant.decode(constant)
          new DeletionVectorStore(configuration.value.value)
            .read(new Path(table), dataFile, descriptor)
        }
      )
    catch {
      // The cache wraps what the loader throws; callers want the error that names table and file.
      case e @ (_: ExecutionException | _: UncheckedExecutionException) => throw e.getCause
    }
  }

  override def probeClass: Class[DeletionVectorProbe] = classOf[DeletionVectorProbe]

  override def newProbe(): DeletionVectorProbe = new DeletionVectorProbe(this)
}

private[spark] object DeletionVectorSource {
  private final case class Key(table: String, constant: UTF8String)

  /** Share of the heap that cached vectors may take; a vector is loaded again when it was evicted. */
  private val heapFraction = 0.1

  /** One per JVM: splits of a file, and tasks that follow each other, share the loaded vector. */
  private val cache: Cache[Key, DeletionVector] = CacheBuilder
    .newBuilder()
    .maximumWeight((Runtime.getRuntime.maxMemory * heapFraction).toLong)
    .weigher[Key, DeletionVector]((key: Key, dv: DeletionVector) =>
      (dv.memoryBytes + key.constant.numBytes).min(Int.MaxValue.toLong).toInt
    )
    .build[Key, DeletionVector]()
}

/**
 * Answers "is this row deleted?" for the rows of a scan, in the order in which it reads them.
 *
 * Row indexes ascend within a split, so the probe remembers the gap `[from, until)` without deleted
 * rows around the last answer: a live row costs a reference comparison and two of longs. A row
 * outside of the gap, even one before it, asks the cursor.
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
    if (rowIndex >= from && rowIndex < until) false else seek(rowIndex)
  }

  private def switchTo(constant: UTF8String): Unit = {
    // Row-based readers hand out a new string object for each row; only another value is another file.
    if (!constant.equals(lastValue)) {
      lastValue = constant.clone()
      cursor = source.open(lastValue).cursor()
      from = 0L
      until = 0L
    }
    lastReference = constant
  }

  private def seek(rowIndex: Long): Boolean = {
    val next = cursor.seek(rowIndex)
    from = rowIndex
    until = next
    next == rowIndex
  }
}
