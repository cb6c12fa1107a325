package io.deltaic.spark

import io.deltaic.protocol.DeltaicException

/** The error of what tables cannot do, or not yet. */
private[spark] object UnsupportedOperation {

  /** @param what the operation, as its user would name it */
  def apply(table: String, what: String): DeltaicException =
    new DeltaicException(
      "DELTAIC_UNSUPPORTED_OPERATION",
      Map("table" -> table, "operation" -> what)
    )
}
