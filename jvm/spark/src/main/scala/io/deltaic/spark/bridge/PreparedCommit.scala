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
    engineMetrics: Map[String, Long] = Map.empty,
    identityMarks: Map[String, Long] = Map.empty
)

/**
 * The handle that Python holds while it decides: it asks about the commits that came in between and
 * tries versions until one is free. The methods are called over Py4J; what they return is small.
 *
 * @param onCommitted told of the version this became; it must not throw
 */
final class PreparedCommit private[spark] (request: CommitRequest, onCommitted: Long => Unit) {
  private var state: PreparedCommit.State = PreparedCommit.Open

  private[spark] def log: DeltaLog = request.log

  /** The version this became, once it did. */
  private[spark] def committedVersion: Option[Long] = synchronized(state) match {
    case PreparedCommit.Committed(version) => Some(version)
    case _ => None
  }

  /**
   * Makes sure that this never becomes a version, so that its files can be cleaned up.
   *
   * @return whether it is so: not if a log entry exists, or may exist although none is known to
   */
  private[spark] def abandon(): Boolean = synchronized {
    state match {
      case PreparedCommit.Open | PreparedCommit.Abandoned =>
        state = PreparedCommit.Abandoned
        true
      case PreparedCommit.Writing | PreparedCommit.Committed(_) => false
    }
  }

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
      "identityMarks" -> request.identityMarks,
      "files" -> request.changes.summary
    )
    .toString

  /**
   * Writes the header's lines and this commit's files as `version`, unless that exists.
   *
   * @param firstRowId the first row id that is free, where the table gives row ids; else negative
   */
  def tryCommit(version: Long, headerLines: String, firstRowId: Long): String = {
    val adds =
      if (firstRowId < 0) request.changes.adds
      else FileChanges.withRowIds(
        request.log.table.toString,
        request.changes.adds,
        firstRowId,
        version
      )
    val fileActions =
      request.changes.removes.iterator ++ adds.iterator ++ request.changes.changeFiles.iterator
    val lines = headerLines.linesIterator ++ fileActions.map(ActionJson.write)
    begin()
    val outcome =
      try request.log.tryCommit(version, lines)
      catch {
        // The log store says so of failures that can have left nothing behind.
        case e: DeltaicException =>
          become(PreparedCommit.Open)
          throw e
      }
    outcome match {
      case WriteOutcome.Written =>
        become(PreparedCommit.Committed(version))
        onCommitted(version)
        Json.obj("status" -> "committed").toString
      case WriteOutcome.AlreadyExists =>
        become(PreparedCommit.Open)
        Json.obj("status" -> "exists").toString
    }
  }

  private def begin(): Unit = synchronized {
    if (state == PreparedCommit.Abandoned)
      throw new DeltaicException(
        "DELTAIC_COMMIT_ABANDONED",
        Map("table" -> request.log.table.toString, "operation" -> request.operation)
      )
    state = PreparedCommit.Writing
  }

  private def become(next: PreparedCommit.State): Unit = synchronized { state = next }

  /** What a commit that won the race did, and where it meets this one. */
  def winner(version: Long): String = {
    val commit = request.log.commit(version)
    val adds = commit.adds.toSeq
    val removes = commit.removes.toSeq
    val info = commit.commitInfo.map(_.json)
    // A file that was only added anew, as when it gets row ids, is not any more what we remove.
    val touched = removes.iterator.map(_.path) ++ adds.iterator.map(_.path)
    Json
      .obj(
        "version" -> version,
        "timestampMs" -> commit.timestampMs,
        "operation" -> info.flatMap(i => Option(i.get("operation"))),
        "isBlindAppend" -> info.flatMap(i => Option(i.get("isBlindAppend"))),
        "protocol" -> commit.protocol.map(ActionBody.write),
        "metaData" -> commit.metadata.map(ActionBody.write),
        "txns" -> commit.actions.collect { case t: SetTransaction => t.appId -> t.version }.toMap,
        "inCommitTimestampMs" -> commit.commitInfo.flatMap(_.inCommitTimestampMs),
        "domains" -> commit.actions.collect { case d: DomainMetadata =>
          d.domain -> Option.unless(d.removed)(d.configuration)
        }.toMap,
        "numAdded" -> adds.size,
        "numRemoved" -> removes.size,
        "dataChange" -> (adds.exists(_.dataChange) || removes.exists(_.dataChange)),
        "addMatchingReads" -> request.readSet.firstMatching(adds.filter(_.dataChange)).map(_.path),
        "removedFileRead" -> request.readSet.firstRead(removes).map(_.path),
        "removedFileRemoved" -> touched.find(path => changedByUs(canonical(path)))
      )
      .toString
  }

  /** Files that are removed, and those that are added: some are there already, under another description. */
  private lazy val changedByUs: Set[String] =
    (request.changes.removes.iterator.map(_.path) ++ request.changes.adds.iterator.map(_.path))
      .map(canonical)
      .toSet

  /** Writers differ in how they spell a path. */
  private def canonical(logPath: String): String = LogPath.canonical(request.log.table, logPath)
}

private object PreparedCommit {
  sealed trait State
  case object Open extends State

  /** A log entry is being written; so it stays if nobody knows how that ended. */
  case object Writing extends State
  final case class Committed(version: Long) extends State

  /** Its files may be gone. */
  case object Abandoned extends State
}
