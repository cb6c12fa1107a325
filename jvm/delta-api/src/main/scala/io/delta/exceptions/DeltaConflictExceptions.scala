package io.delta.exceptions

import io.deltaic.spark.errors.{ConflictExceptions, DeltaicConcurrentModificationException}

/** What an exception of this package reports; without parameters if a program creates it. */
private[exceptions] final case class Conflict(
    condition: String,
    message: String,
    parameters: Map[String, String] = Map.empty,
    cause: Throwable = null
)

/** Gives Deltaic the classes of this package for its conflicts. Named in `META-INF/services`. */
class DeltaConflictExceptions extends ConflictExceptions {

  private val classes: Map[String, Conflict => DeltaicConcurrentModificationException] = Map(
    "ConcurrentAppendException" -> (new ConcurrentAppendException(_: Conflict)),
    "ConcurrentDeleteReadException" -> (new ConcurrentDeleteReadException(_: Conflict)),
    "ConcurrentDeleteDeleteException" -> (new ConcurrentDeleteDeleteException(_: Conflict)),
    "ConcurrentTransactionException" -> (new ConcurrentTransactionException(_: Conflict)),
    "ConcurrentWriteException" -> (new ConcurrentWriteException(_: Conflict)),
    "MetadataChangedException" -> (new MetadataChangedException(_: Conflict)),
    "ProtocolChangedException" -> (new ProtocolChangedException(_: Conflict))
  )

  override def create(
      className: String,
      condition: String,
      message: String,
      parameters: Map[String, String],
      cause: Throwable
  ): Option[DeltaicConcurrentModificationException] =
    classes.get(className).map(_(Conflict(condition, message, parameters, cause)))
}
