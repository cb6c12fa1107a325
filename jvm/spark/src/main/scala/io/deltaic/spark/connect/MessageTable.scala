package io.deltaic.spark.connect

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.SessionTable

private[connect] object MessageTable {

  /** @param message a `delta.connect.DeltaTable` */
  def of(spark: SparkSession, message: WireMessage): SessionTable =
    message.alternative() match {
      case "path" =>
        val path = message.message("path")
        SessionTable.at(spark, path.string("path"), path.stringMap("hadoop_conf"))
      case _ => SessionTable.forName(spark, message.string("table_or_view_name"))
    }
}
