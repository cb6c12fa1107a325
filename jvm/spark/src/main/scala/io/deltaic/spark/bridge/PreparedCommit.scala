package io.deltaic.spark.bridge

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.log.WriteOutcome
import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog

/** Everything about a finished write that its commit needs. */
private[spark] final case class CommitRequest(
    log: DeltaLog,
    readVersion: Long,
    operation: String,
    operationParameters: Map[String, String],
    plan: ObjectNode,
    isBlindAppend: Boolean,
    options: Map[String, String],
    changes: FileChanges,
    readSet: ReadSet,
    engineMetrics: Map[String, Long] = Map.empty
)

/**
 * The handle that Python holds while it decides: it asks about the commits that came in between and
 * tries versions until one is free. The methods are called over Py4J; what they return is small.
 *
 * @param onCommitted told of the version this became; it must not throw
 */
final class PreparedCommit private[spark] (request: CommitRequest, onCommitted: Long => Unit) {
  @volatile private var committed: Option[Long] = None
  @volatile private var writing = false

  /** The version this became, once it did. */
  private[spark] def committedVersion: Option[Long] = committed

  /** Whether a log entry may exist although none is known to; then no file may be cleaned up. */
  private[spark] def outcomeUnknown: Boolean = writing

  def summary(): String = Json
    .obj(
      "table" -> request.log.table.toString,
      "readVersion" -> request.readVersion,
      "operation" -> request.operation,
      "operationParameters" -> request.operationParameters,
      "plan" -> request.plan,
      "isBlindAppend" -> request.isBlindAppend,
      "readsWholeTable" -> request.readSet.wholeTable,
      "options" -> request.options,
      "engineMetrics" -> request.engineMetrics,
      "files" -> request.changes.summary
    )
    .toString

  /** Writes the header's lines and this commit's files as `version`, unless that exists. */
  def tryCommit(version: Long, headerLines: String): String = {
    val fileActions = request.changes.removes.iterator ++ request.changes.adds.iterator
    val lines = headerLines.linesIterator ++ fileActions.map(ActionJson.write)
    writing = true
    val outcome =
      try request.log.tryCommit(version, lines)
      catch {
        // The log store says so of failures that can have left nothing behind.
        case e: DeltaicException =>
          writing = false
          throw e
      }
    writing = false
    outcome match {
      case WriteOutcome.Written =>
        committed = Some(version)
        onCommitted(version)
        Json.obj("status" -> "committed").toString
      case WriteOutcome.AlreadyExists => Json.obj("status" -> "exists").toString
    }
  }

  /** What a commit that won the race did, and where it meets this one. */
  def winner(version: Long): String = {
    val commit = request.log.commit(version)
    val adds = commit.actions.collect { case a: AddFile => a }
    val removes = commit.actions.collect { case r: RemoveFile => r }
    val info = commit.actions.collectFirst { case i: CommitInfo => i.json }
    val removedByUs = request.changes.removes.iterator.map(_.path).toSet
    Json
      .obj(
        "version" -> version,
        "timestampMs" -> commit.timestampMs,
        "operation" -> info.flatMap(i => Option(i.get("operation"))),
        "isBlindAppend" -> info.flatMap(i => Option(i.get("isBlindAppend"))),
        "protocol" -> commit.actions.collectFirst { case p: Protocol => ActionBody.write(p) },
        "metaData" -> commit.actions.collectFirst { case m: Metadata => ActionBody.write(m) },
        "txns" -> commit.actions.collect { case t: SetTransaction => t.appId -> t.version }.toMap,
        "domains" -> commit.actions.collect { case d: DomainMetadata => d.domain },
        "numAdded" -> adds.size,
        "numRemoved" -> removes.size,
        "dataChange" -> (adds.exists(_.dataChange) || removes.exists(_.dataChange)),
        "addMatchingReads" -> request.readSet.firstMatching(adds.filter(_.dataChange)).map(_.path),
        "removedFileRead" -> request.readSet.firstRead(removes).map(_.path),
        "removedFileRemoved" -> removes.find(r => removedByUs(r.path)).map(_.path)
      )
      .toString
  }
}
