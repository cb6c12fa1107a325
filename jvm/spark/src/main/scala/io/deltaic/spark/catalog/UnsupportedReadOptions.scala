package io.deltaic.spark.catalog

import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.write.WriteTransaction

/** Options that change what a read returns, and that are not there yet: ignoring one would lie. */
private[catalog] object UnsupportedReadOptions {
  private val changeFeed = Seq("readChangeFeed", "readChangeData")

  def refuse(log: DeltaLog, options: CaseInsensitiveStringMap): Unit =
    changeFeed.filter(options.getBoolean(_, false)).foreach { option =>
      throw WriteTransaction.unsupported(log.table.toString, s"reading with option $option")
    }
}
