package io.deltaic.spark

import org.apache.spark.sql.classic.SparkSession

/** Settings of a session that go by our name and by delta-spark's; ours counts where both are set. */
private[spark] object SessionSettings {
  val Prefix = "spark.deltaic."
  private val Prefixes = Seq(Prefix, "spark.databricks.delta.")

  /** @param name without the prefix */
  def get(spark: SparkSession, name: String): Option[String] =
    Prefixes.iterator.flatMap(prefix => spark.conf.getOption(prefix + name)).nextOption()

  def unset(spark: SparkSession, name: String): Unit =
    Prefixes.foreach(prefix => spark.conf.unset(prefix + name))
}
