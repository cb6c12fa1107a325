package io.delta.exceptions

import io.deltaic.spark.errors.DeltaicConcurrentModificationException

/**
 * A commit conflicts with one that was made concurrently. The statement has changed nothing.
 *
 * The classes of this package have the names of delta-spark's. What they report is described for the classes of the
 * same names in Python, in `deltaic.exceptions`.
 */
abstract class DeltaConcurrentModificationException private[exceptions] (conflict: Conflict)
    extends DeltaicConcurrentModificationException(
      conflict.condition,
      conflict.parameters,
      conflict.cause
    ) {
  def this(message: String) = this(Conflict("DELTAIC_FILES_CHANGED_CONCURRENTLY", message))

  override def getMessage: String = conflict.message
}

/** A concurrent commit added files that this operation would have had to read. */
class ConcurrentAppendException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_CONCURRENT_APPEND", message))
}

/** A concurrent commit removed or changed a file that this operation has read. */
class ConcurrentDeleteReadException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_CONCURRENT_DELETE_READ", message))
}

/** A concurrent commit deleted, updated or moved rows that this operation also changes. */
class ConcurrentDeleteDeleteException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_CONCURRENT_DELETE_DELETE", message))
}

/** A concurrent commit has the same application transaction, or sets the same metadata domain. */
class ConcurrentTransactionException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_CONCURRENT_TRANSACTION", message))
}

/** A concurrent commit changed the table, and what it changed is not known, or it was one of too many. */
class ConcurrentWriteException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_FILES_CHANGED_CONCURRENTLY", message))
}

/** A concurrent commit changed the schema, the partitioning or the properties of the table. */
class MetadataChangedException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_METADATA_CHANGED", message))
}

/** A concurrent commit changed the protocol of the table, or created the table. */
class ProtocolChangedException private[exceptions] (conflict: Conflict)
    extends DeltaConcurrentModificationException(conflict) {
  def this(message: String) = this(Conflict("DELTAIC_PROTOCOL_CHANGED", message))
}
