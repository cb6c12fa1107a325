package io.deltaic.spark.commit

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.scan.files.LocalCommits
import io.deltaic.spark.util.SessionSettings

/** Updates the state of a session after each commit. */
private[spark] object PostCommit {

  /** Nothing is thrown; see [[CachedPlans.refresh]]. */
  def updateSession(spark: SparkSession, table: Path, version: Long): Unit = {
    spark.conf.set(SessionSettings.LastCommitVersion, version)
    LocalCommits.add(table, version)
    CachedPlans.refresh(spark, table)
  }
}
