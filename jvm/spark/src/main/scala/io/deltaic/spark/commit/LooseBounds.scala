package io.deltaic.spark.commit

import io.deltaic.spark.util.Json

/** Statistics of a file whose deletion vector grew (Protocol § Per-file Statistics). */
private[spark] object LooseBounds {

  /**
   * The same bounds with `tightBounds` false, and with `numRecords`, which a deletion vector requires. Statistics
   * that cannot be parsed are dropped, as every reader ignores them.
   */
  def of(stats: Option[String], physicalRows: Long): String = {
    val json = stats.flatMap(Json.tryParse).getOrElse(Json.obj())
    json.put("numRecords", physicalRows)
    json.put("tightBounds", false)
    json.toString
  }
}
