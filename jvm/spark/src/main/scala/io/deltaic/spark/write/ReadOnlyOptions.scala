package io.deltaic.spark.write

import java.util.Locale

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** Refuses time travel options of a write. A write is always based on the newest version. */
private[spark] object ReadOnlyOptions {
  private val names = Seq("versionAsOf", "timestampAsOf")

  def refuse(table: String, options: Iterable[String]): Unit = {
    val present = options.iterator.map(_.toLowerCase(Locale.ROOT)).toSet
    names.find(name => present(name.toLowerCase(Locale.ROOT))).foreach { name =>
      throw refusal(table, s"option $name")
    }
  }

  /** @param what the option or suffix that specifies an older version */
  def refusal(table: String, what: String): DeltaicThrowable =
    DeltaicException("DELTAIC_WRITE_TO_OLDER_VERSION", Map("table" -> table, "what" -> what))
}
