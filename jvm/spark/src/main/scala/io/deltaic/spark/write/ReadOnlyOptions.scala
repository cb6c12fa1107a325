package io.deltaic.spark.write

import java.util.Locale

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** Options that ask for an older version. A write goes to the newest one; to ignore them would be to lie. */
private[spark] object ReadOnlyOptions {
  private val names = Seq("versionAsOf", "timestampAsOf")

  def refuse(table: String, options: Iterable[String]): Unit = {
    val asked = options.iterator.map(_.toLowerCase(Locale.ROOT)).toSet
    names.find(name => asked(name.toLowerCase(Locale.ROOT))).foreach { name =>
      throw refusal(table, s"option $name")
    }
  }

  /** @param what asks for an older version */
  def refusal(table: String, what: String): DeltaicThrowable =
    DeltaicException("DELTAIC_WRITE_TO_OLDER_VERSION", Map("table" -> table, "what" -> what))
}
