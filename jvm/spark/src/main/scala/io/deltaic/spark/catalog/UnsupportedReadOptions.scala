package io.deltaic.spark.catalog

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.UnsupportedOperation

/** Options that change what a read returns, where they cannot be followed: ignoring one would lie. */
private[catalog] object UnsupportedReadOptions {

  /** A scan of the table's rows is no answer to a request for its changes. */
  def refuse(log: DeltaLog, options: CaseInsensitiveStringMap): Unit =
    if (ChangeFeedOptions.areIn(options))
      throw UnsupportedOperation(
        log.table.toString,
        s"reading with option ${ChangeFeedOptions.ReadChangeFeed}, where the query names a version " +
          "or is a stream, or the session lacks " +
          "spark.sql.extensions=io.deltaic.spark.DeltaicExtension,"
      )
}
