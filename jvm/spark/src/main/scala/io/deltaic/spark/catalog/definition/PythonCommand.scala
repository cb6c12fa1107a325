package io.deltaic.spark.catalog.definition

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.classic.SparkSession
import org.slf4j.{Logger, LoggerFactory}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, Metadata, Protocol, TableFeatures}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.{
  ActionBody,
  CommandRequest,
  CommitFiles,
  CommitRequest,
  CommitterReply,
  Committers,
  MaintenanceRequest,
  Message,
  OperationInfo,
  PostCommit,
  PrefetchedState,
  PreparedCommit,
  ReadSet,
  TableRead
}
import io.deltaic.spark.util.Json

/**
 * A command that commits non-file actions. Python returns the actions, and the first attempt to commit them is made
 * here. Python is called again only if another writer has committed the version.
 */
private[spark] final class PythonCommand(spark: SparkSession, log: DeltaLog, name: String) {

  /** The version that the command is based on; none if there is no table. */
  lazy val newest: Option[Snapshot] =
    try Some(log.latest())
    catch { case e: DeltaicThrowable if e.getCondition == "DELTAIC_NOT_A_TABLE" => None }

  /**
   * @param arguments see [[CommandRequest]]
   * @param onLost called if another writer has committed the version: by default, Python tries further versions
   */
  def run(arguments: Seq[(String, Any)], onLost: PreparedCommit => Unit = retry): Unit = {
    val prefetched = PrefetchedState.ofCommand(spark, log, newest)
    CommandRequest(name, arguments, Some(prefetched)).commit(spark).get("firstAttempt") match {
      case attempt: ObjectNode => tryFirst(attempt, onLost)
      case _ => () // Python has committed, or there is nothing to commit.
    }
  }

  /** Runs the command again. It sees what the other writer has committed. */
  def runAgain(arguments: Seq[(String, Any)]): Unit = {
    CommandRequest(name, arguments).commit(spark)
    ()
  }

  private def tryFirst(attempt: ObjectNode, onLost: PreparedCommit => Unit): Unit = {
    val version = attempt.get("version").longValue
    val summary = attempt.get("summary").asInstanceOf[ObjectNode]
    // The commit file of the version that was sent: the path may be another table's by now.
    val readCommit = newest.filter(_.version + 1 == version).flatMap(_.commitFile)
    val prepared = PythonCommand.prepare(spark, log, summary, CommitFiles(), readCommit)
    val lines = Json.stringsIn(attempt.get("lines")).mkString("\n")
    val isCommitted =
      try
        Json.parse(prepared.tryCommit(version, lines, PythonCommand.NoRowIds))
          .get("status").asText == "committed"
      catch {
        case e: DeltaicThrowable => throw e // Certainly not committed.
        case e @ (NonFatal(_) | _: InterruptedException) =>
          if (e.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
          throw DeltaicException(
            "DELTAIC_COMMIT_STATE_UNKNOWN",
            Map(
              "table" -> log.table.toString,
              "version" -> version.toString,
              "txnId" -> attempt.get("txnId").asText,
              "reason" -> e.toString
            ),
            e
          )
      }
    if (isCommitted) maintain(version, attempt.get("maintenance")) else onLost(prepared)
  }

  private def maintain(version: Long, due: JsonNode): Unit = due match {
    case request: ObjectNode =>
      try CommitMaintenance.run(spark, log, version, MaintenanceRequest.of(request))
      catch {
        case e @ (NonFatal(_) | _: InterruptedException) =>
          if (e.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
          PythonCommand.logger.warn(
            s"${log.table}: version $version is committed, but its maintenance failed",
            e
          )
      }
    case _ => ()
  }

  private def retry(prepared: PreparedCommit): Unit = {
    val request = PrefetchedState.beforeCommit(spark, prepared)
    CommitterReply.toRequest(request)(Committers.current(spark).commit(spark, prepared, _))
    ()
  }
}

private[spark] object PythonCommand {
  private val logger: Logger = LoggerFactory.getLogger(classOf[PythonCommand])
  private val NoRowIds = -1L

  /** Whether the definition that Python has planned enables a table feature. */
  def enables(summary: ObjectNode, feature: String): Boolean =
    TableFeatures.isEnabled(protocol(summary), metadata(summary), feature)

  /** Whether it supports a table feature, which may be disabled. */
  def supports(summary: ObjectNode, feature: String): Boolean =
    TableFeatures.supports(protocol(summary), feature)

  /** The metadata that Python has planned. */
  def metadata(summary: ObjectNode): Metadata =
    ActionBody.metadata(definition(summary).required("metaData"))

  private def protocol(summary: ObjectNode): Protocol =
    ActionBody.protocol(definition(summary).required("protocol"))

  private def definition(summary: ObjectNode): JsonNode =
    summary.required("plan").required("definition")

  /**
   * A commit that Python has planned.
   *
   * @param summary a `CommitSummary`
   * @param knownCommit the commit file of the version that was read, if it is known
   * @param metrics counts from which operation metrics are derived
   */
  def prepare(
      spark: SparkSession,
      log: DeltaLog,
      summary: ObjectNode,
      files: CommitFiles,
      knownCommit: Option[FileStatus] = None,
      metrics: Map[String, Long] = Map.empty
  ): PreparedCommit = {
    Message.checked("CommitSummary", summary)
    val readVersion = summary.get("readVersion").longValue
    val operation = summary.get("operation")
    new PreparedCommit(
      CommitRequest(
        log = log,
        read = TableRead(
          readVersion,
          if (summary.get("readsWholeTable").asBoolean) ReadSet.everything else ReadSet.nothing,
          knownCommit.orElse(Option.when(readVersion >= 0)(readVersion).flatMap(log.commitFile))
        ),
        operation = OperationInfo(
          operation.get("name").asText,
          Json.strings(operation.get("parameters")),
          Json.strings(operation.get("options"))
        ),
        plan = summary.get("plan").asInstanceOf[ObjectNode],
        isBlindAppend = summary.get("isBlindAppend").asBoolean,
        changes = files,
        engineMetrics = metrics ++ Json.numbers(summary.get("engineMetrics"))
      ),
      PostCommit.updateSession(spark, log.table, _)
    )
  }
}
