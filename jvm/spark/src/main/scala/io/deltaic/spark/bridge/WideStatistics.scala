package io.deltaic.spark.bridge

/** Statistics of a file whose deletion vector grew (Protocol § Per-file Statistics). */
private[spark] object WideStatistics {

  /**
   * The same bounds, marked as wide, with the row count that a deletion vector demands. Statistics
   * that cannot be read are left out, as every reader leaves them out of account.
   */
  def of(stats: Option[String], physicalRows: Long): String = {
    val json = stats.flatMap(Json.tryParse).getOrElse(Json.obj())
    json.put("numRecords", physicalRows)
    json.put("tightBounds", false)
    json.toString
  }
}
