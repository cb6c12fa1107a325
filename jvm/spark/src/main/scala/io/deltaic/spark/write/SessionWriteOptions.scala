package io.deltaic.spark.write

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.replay.Snapshot
import io.deltaic.spark.SessionSettings

/**
 * Options that a session may set for all its writes, SQL statements included: progress that makes a
 * write count once, and a remark for the history. What a write states itself takes precedence.
 *
 * @param stated the write's own options, keys in lower case
 */
private[spark] final class SessionWriteOptions(spark: SparkSession, stated: Map[String, String]) {

  import SessionWriteOptions._

  /** Application and version belong together: neither is taken from elsewhere than the other. */
  private val txn: Map[String, String] =
    if (stated.contains("txnappid") || stated.contains("txnversion")) Map.empty
    else
      setting("write.txnAppId").map("txnappid" -> _).toMap ++
        setting("write.txnVersion").map("txnversion" -> _)

  val all: Map[String, String] = userMetadata(spark) ++ txn ++ stated

  /** Whether an earlier write has made this one (Protocol § Transaction Identifiers). */
  def isApplied(snapshot: Snapshot): Boolean = {
    val applied = for {
      appId <- all.get("txnappid")
      version <- all.get("txnversion").flatMap(_.trim.toLongOption)
      last <- snapshot.unexpiredTransactions(System.currentTimeMillis).get(appId)
    } yield last.version >= version
    applied.contains(true)
  }

  /**
   * A statement has been made under the session's progress, or was not made again. A session that is
   * set so forgets the version then, so that no other statement is taken for the same.
   */
  def used(): Unit =
    if (
      txn.contains("txnversion") &&
      SessionSettings.isOn(spark, "write.txnVersion.autoReset.enabled")
    )
      SessionSettings.unset(spark, "write.txnVersion")

  private def setting(name: String): Option[String] = SessionSettings.get(spark, name)
}

private[spark] object SessionWriteOptions {

  /** The remark alone, for commits that are not writes. */
  def userMetadata(spark: SparkSession): Map[String, String] =
    SessionSettings.get(spark, "commitInfo.userMetadata").map("usermetadata" -> _).toMap
}
