package io.deltaic.spark.write

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.slf4j.LoggerFactory

import io.deltaic.replay.Snapshot
import io.deltaic.spark.util.SessionSettings

/**
 * Options that a session may set for all its writes, including SQL statements: `txnAppId` and `txnVersion` for
 * idempotent writes, and `userMetadata`. The options of a write take precedence.
 *
 * @param options the write's own options, keys in lower case
 * @param changesRows whether it is a write; a command that only rewrites files is not part of an application's progress
 */
private[spark] final class SessionWriteOptions(
    spark: SparkSession,
    options: Map[String, String],
    changesRows: Boolean = true
) {

  /** PySpark passes None as null. Such an option is not set. */
  private val own: Map[String, String] = options.filter(_._2 != null)

  private val ofStatement: Map[String, String] =
    if (!changesRows || own.contains("txnappid") || own.contains("txnversion")) Map.empty
    else StatementTransaction.options

  /** Application and version come from the same source: the write, the statement, or the session. */
  private val txn: Map[String, String] =
    if (
      !changesRows || own.contains("txnappid") || own.contains("txnversion") ||
      ofStatement.nonEmpty
    ) Map.empty
    else
      setting("write.txnAppId").map("txnappid" -> _).toMap ++
        setting("write.txnVersion").map("txnversion" -> _)

  val all: Map[String, String] =
    setting("commitInfo.userMetadata").map("usermetadata" -> _).toMap ++ txn ++ ofStatement ++ own

  /** Whether this write has already been committed (Protocol § Transaction Identifiers). */
  def isAlreadyCommitted(snapshot: Snapshot): Boolean = {
    val applied = for {
      appId <- all.get("txnappid")
      // The commit refuses a version that is not valid.
      version <- all.get("txnversion").flatMap(_.trim.toLongOption).filter(_ >= 0)
      last <- snapshot.unexpiredTransactions(System.currentTimeMillis).get(appId)
    } yield last.version >= version
    applied.contains(true)
  }

  /**
   * Called after a statement has been committed or skipped under the session's `txnVersion`. With
   * `write.txnVersion.autoReset.enabled` the version is unset, so that the next statement is not skipped.
   */
  def used(): Unit =
    if (
      txn.contains("txnversion") &&
      SessionSettings.isOn(spark, "write.txnVersion.autoReset.enabled")
    )
      SessionSettings.unset(spark, "write.txnVersion")

  /** Called instead of a write that has already been committed. */
  def skipped(table: Path): Unit = {
    SessionWriteOptions.logger.warn(
      "Table {}: a write with txnAppId {} and txnVersion {} is skipped, because one with this or a later version " +
        "has been committed",
      table,
      all.getOrElse("txnappid", ""),
      all.getOrElse("txnversion", "")
    )
    used()
  }

  private def setting(name: String): Option[String] = SessionSettings.get(spark, name)
}

private object SessionWriteOptions {
  private val logger = LoggerFactory.getLogger(classOf[SessionWriteOptions])
}
