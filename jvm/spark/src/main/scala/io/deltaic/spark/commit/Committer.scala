package io.deltaic.spark.commit

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.util.Json

/**
 * Plans and commits the writes of a table. Python implements it, in the driver's own Python or in a committer process.
 *
 * Responses are JSON: `{"ok": ...}` or `{"error": {"condition", "parameters", "message"}}`. Nothing is
 * thrown across the bridge; long strings are sent once (see [[InternedStrings]]). All methods may be called from
 * any thread, on behalf of a session. A request includes the state that Python would otherwise have to request (see
 * [[PrefetchedState]]).
 */
trait Committer {

  /** Before any data is written: returns the protocol and metadata for the write. */
  def plan(session: SparkSession, requestJson: String): String

  /**
   * Commits what has been prepared as a version of the table, or returns an error: after the data is written, or after
   * the first attempt of a command was lost.
   */
  def commit(session: SparkSession, prepared: PreparedCommit, prefetchedJson: String): String

  /** Runs a command that starts in the JVM, such as `createTable`; see [[CommandRequest]]. */
  def run(session: SparkSession, command: String, requestJson: String): String
}

/**
 * A request to [[Committer.run]].
 *
 * @param arguments the fields of the record that has the name of the command, with a capital letter
 */
private[spark] final case class CommandRequest(
    command: String,
    arguments: Seq[(String, Any)],
    prefetched: Option[ObjectNode] = None
) {
  private def json: ObjectNode = Message.of("CommandRequest")(
    "arguments" -> Message.of(command.capitalize)(arguments: _*),
    "prefetched" -> prefetched
  )

  /** The `CommitResult` of a command that commits. */
  def commit(spark: SparkSession): ObjectNode = Message.checked("CommitResult", send(spark))

  /** The rows that the command returns, as a JSON array. */
  def rows(spark: SparkSession): String =
    Message.checked("RowSet", send(spark)).get("rows").toString

  /** The result of another command, which is of the named record. */
  def result(spark: SparkSession, record: String): ObjectNode = Message.checked(record, send(spark))

  private def send(spark: SparkSession): ObjectNode =
    CommitterReply.toRequest(json)(Committers.current(spark).run(spark, command, _))
}

private[spark] object CommitterReply {

  /**
   * Sends a request that may hold long strings, and returns the `ok` part of the response. An error is thrown as an
   * exception with its own condition.
   */
  def toRequest(request: ObjectNode)(send: String => String): ObjectNode =
    require(InternedStrings.send(request)(send))

  private def require(reply: ObjectNode): ObjectNode = reply.get("error") match {
    case null => reply.get("ok").asInstanceOf[ObjectNode]
    case error => throw toException(error)
  }

  private def toException(error: JsonNode): DeltaicThrowable =
    DeltaicException(error.get("condition").asText, Json.strings(error.get("parameters")))
}

/** The protocol and metadata of a write; the response to [[Committer.plan]]. */
private[spark] final class CommitPlan(val json: ObjectNode) {
  Message.checked("CommitPlan", json)

  private val definition = json.get("definition")
  val metadata: io.deltaic.protocol.Metadata = ActionBody.metadata(definition.get("metaData"))
  val protocol: io.deltaic.protocol.Protocol = ActionBody.protocol(definition.get("protocol"))
  val isBlindAppend: Boolean = json.get("isBlindAppend").asBoolean

  /** Whether the commit changes rows; if not, it only rearranges them in files. */
  val changesData: Boolean = json.get("changesData").asBoolean

  /** Whether the table has a change data feed, which this commit has to write. */
  val writesChangeDataFeed: Boolean = json.get("writesChangeDataFeed").asBoolean

  /** The configuration that the commit sets for a metadata domain, if any. */
  def domain(name: String): Option[String] = json.get("domains").elements.asScala
    .find(domain => domain.path("domain").asText == name && !domain.path("removed").asBoolean)
    .map(_.path("configuration").asText)

  /** Whether an earlier write with the same `txnAppId` and `txnVersion` has already been committed. */
  val alreadyCommitted: Boolean = json.get("alreadyCommitted").asBoolean
}
