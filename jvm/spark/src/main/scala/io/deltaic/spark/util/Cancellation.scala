package io.deltaic.spark.util

import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeltaicException

/**
 * Lets a statement notice that it was cancelled while none of its jobs runs: Spark cancels the jobs of that time, and
 * later ones run.
 */
private[spark] final class Cancellation private (operation: String, table: Path) {
  private val before = Cancellation.count.get

  /**
   * Fails if everything was cancelled since the statement began.
   *
   * @throws java.lang.InterruptedException if its thread was interrupted, as by the Thrift server, by Spark Connect, and by
   *   `StreamingQuery.stop`, which expects this exception
   */
  def check(): Unit =
    if (Cancellation.count.get != before)
      throw DeltaicException(
        Cancellation.Condition,
        Map("operation" -> operation, "table" -> table.toString)
      )
    else if (Thread.currentThread.isInterrupted)
      throw new InterruptedException(s"$operation of table $table")
}

private[spark] object Cancellation {

  val Condition = "DELTAIC_STATEMENT_CANCELLED"

  /** How often everything was cancelled. */
  private val count = new AtomicLong

  /** A statement that begins now. */
  def of(operation: String, table: Path): Cancellation = new Cancellation(operation, table)

  /** Cancels the statements that are running. */
  def cancelAll(): Unit = { count.incrementAndGet(); () }
}
