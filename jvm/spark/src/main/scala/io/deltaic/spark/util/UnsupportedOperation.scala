package io.deltaic.spark.util

import scala.jdk.CollectionConverters._

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, SharedResource}

/** The errors for operations that tables do not support. */
private[spark] object UnsupportedOperation {

  /** @param what the operation, as its user would name it */
  def apply(table: String, what: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_UNSUPPORTED_OPERATION",
      Map("table" -> table, "operation" -> what)
    )

  /** @param name a key of `unsupported-commands.json`, which names the alternative */
  def command(name: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_UNSUPPORTED_COMMAND",
    Map("command" -> name, "instead" -> alternatives(name))
  )

  private lazy val alternatives: Map[String, String] = SharedResource
    .json("unsupported-commands.json")
    .properties
    .asScala
    .map(entry => entry.getKey -> entry.getValue.asText)
    .toMap
}
