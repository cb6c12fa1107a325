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
   * Fails if everything was cancelled since the statement began, or if its thread was interrupted, as by the Thrift server
   * and Spark Connect.
   */
  def check(): Unit =
    if (Cancellation.count.get != before || Thread.currentThread.isInterrupted)
      throw DeltaicException(
        "DELTAIC_STATEMENT_CANCELLED",
        Map("operation" -> operation, "table" -> table.toString)
      )
}

private[spark] object Cancellation {

  /** How often everything was cancelled. */
  private val count = new AtomicLong

  /** A statement that begins now. */
  def of(operation: String, table: Path): Cancellation = new Cancellation(operation, table)

  /** Cancels the statements that are running. */
  def cancelAll(): Unit = { count.incrementAndGet(); () }
}
