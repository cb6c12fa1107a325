package io.deltaic.spark.write

/** An idempotent write (Protocol § Transaction Identifiers). */
private[spark] trait IdempotentWrite {

  /** Whether an earlier write has already been committed with the same transaction identifier. */
  def isAlreadyCommitted: Boolean

  /** Logs that it is skipped, and marks the transaction identifier as used, as the write would. */
  def skip(): Unit
}
