package io.deltaic.spark.connect

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.PythonApi
import io.deltaic.spark.util.Json

/**
 * The table of a message.
 *
 * @param spark the session, with the settings of the table's file system
 * @param settings of its file system
 * @param name in the catalog, if it was found there
 */
private[connect] final case class MessageTable(
    spark: SparkSession,
    path: String,
    settings: Map[String, String],
    name: Option[String]
) {

  /** Its rows, with the newest version whenever they are read. */
  def rows: DataFrame = name match {
    case Some(name) => spark.table(name)
    case None => spark.read.format("delta").options(settings).load(path)
  }
}

private[connect] object MessageTable {

  /** @param message a `delta.connect.DeltaTable` */
  def of(spark: SparkSession, message: WireMessage): MessageTable =
    message.alternative() match {
      case "path" =>
        val path = message.message("path")
        val settings = path.stringMap("hadoop_conf")
        MessageTable(withSettings(spark, settings), path.string("path"), settings, None)
      case _ =>
        val found = Json.parse(PythonApi.resolveName(spark, message.string("table_or_view_name")))
        val name = found.get("name").textValue
        MessageTable(spark, found.get("path").textValue, Map.empty, Some(name))
    }

  /** Settings of a file system, which apply to one statement only. */
  private def withSettings(spark: SparkSession, settings: Map[String, String]): SparkSession =
    if (settings.isEmpty) spark
    else {
      val others = settings.keys.filterNot(key => key.startsWith("fs.") || key.startsWith("dfs."))
      others.toSeq.sorted.headOption.foreach { key =>
        throw DeltaicException(
          "DELTAIC_INVALID_ARGUMENT",
          Map("argument" -> "hadoopConf", "value" -> key, "reason" -> FileSystemSettings)
        )
      }
      val session = SessionInternals.cloned(spark)
      settings.foreach { case (key, value) => session.conf.set(key, value) }
      session
    }

  private val FileSystemSettings =
    "it needs to be a dict of strings, whose names begin with fs. or dfs."
}
