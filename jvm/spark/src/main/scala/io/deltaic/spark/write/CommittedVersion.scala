package io.deltaic.spark.write

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.SessionSettings
import io.deltaic.spark.scan.LocalCommits

/** Updates the state of a session after each commit. */
private[spark] object CommittedVersion {

  /** Nothing is thrown; see [[CachedPlans.refresh]]. */
  def record(spark: SparkSession, table: Path, version: Long): Unit = {
    spark.conf.set(SessionSettings.LastCommitVersion, version)
    LocalCommits.add(table, version)
    CachedPlans.refresh(spark, table)
  }
}
