package io.deltaic.spark.bridge

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * Decides what a commit is. Python implements it, in the driver's own Python or in a sidecar.
 *
 * Replies are JSON: `{"ok": ...}` or `{"error": {"condition", "parameters", "message"}}`. Nothing is
 * thrown across the bridge; long texts are told once (see [[WideTexts]]). All methods may be called from
 * any thread, on behalf of a session; what Python would have to ask for besides is told at once (see
 * [[Told]]).
 */
trait Committer {

  /** Before any data is written: which protocol and metadata the write will be made under. */
  def plan(session: SparkSession, requestJson: String): String

  /** After the data is written: makes it a version of the table, or says why not. */
  def commit(session: SparkSession, prepared: PreparedCommit, toldJson: String): String

  /** Runs a command that begins in the JVM, such as `createTable`. */
  def run(session: SparkSession, command: String, argumentsJson: String): String
}

private[spark] object CommitterReply {

  /** The `ok` part of a reply; an error becomes an exception under its own condition. */
  def require(reply: String): ObjectNode = require(Json.parse(reply))

  /** The `ok` part of the reply to a question that may hold long texts. */
  def toQuestion(question: ObjectNode)(send: String => String): ObjectNode =
    require(WideTexts.ask(question)(send))

  private def require(reply: ObjectNode): ObjectNode = reply.get("error") match {
    case null => reply.get("ok").asInstanceOf[ObjectNode]
    case error => throw toException(error)
  }

  private def toException(error: JsonNode): DeltaicThrowable =
    DeltaicException(error.get("condition").asText, Json.strings(error.get("parameters")))
}

/** What a write will be committed under; the reply to [[Committer.plan]]. */
private[spark] final class CommitPlan(val json: ObjectNode) {
  val metadata: io.deltaic.protocol.Metadata = ActionBody.metadata(json.get("effectiveMetaData"))
  val protocol: io.deltaic.protocol.Protocol = ActionBody.protocol(json.get("effectiveProtocol"))
  val isBlindAppend: Boolean = json.path("isBlindAppend").asBoolean(false)

  /** Whether the rows are others afterwards; if not, they only lie in other files. */
  val changesData: Boolean = json.path("changesData").asBoolean(true)

  /** Whether the table has a change data feed, which this commit has to keep true. */
  val feedsChanges: Boolean = json.path("feedsChanges").asBoolean(false)

  /** What the commit sets a metadata domain to, if it sets it. */
  def domain(name: String): Option[String] = json.path("domains").elements.asScala
    .find(domain => domain.path("domain").asText == name && !domain.path("removed").asBoolean)
    .map(_.path("configuration").asText)

  /** A write that an earlier one with the same `txnAppId` and `txnVersion` has already made. */
  val alreadyApplied: Boolean = json.path("skipped").asBoolean(false)
}
