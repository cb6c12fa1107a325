package io.deltaic.spark.catalog

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.util.UnsupportedOperation

/** Refuses options that change the result of a read where they are not supported, instead of ignoring them. */
private[catalog] object UnsupportedReadOptions {

  /** A scan of the table's rows must not be returned for a read of its changes. */
  def refuse(log: DeltaLog, options: CaseInsensitiveStringMap): Unit =
    if (ChangeFeedOptions.areIn(options))
      throw UnsupportedOperation(
        log.table.toString,
        s"reading with option ${ChangeFeedOptions.ReadChangeFeed}, where the query names a version " +
          "or is a stream, or the session lacks " +
          "spark.sql.extensions=io.deltaic.spark.DeltaicExtension,"
      )
}
