package io.deltaic.spark.bridge

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log.{CommitFile, WriteOutcome}
import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog

/**
 * Everything about a finished write that its commit needs.
 *
 * @param identityMarks how far the rows take identity columns, by column
 * @param numbered those of them whose values the table has given
 * @param rowEnds given if the commit may share files with others
 * @param vectorFiles the files that it wrote deletion vectors to
 * @param readCommit the commit file of the version that was read, if there is one
 */
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
    identityMarks: Map[String, Long] = Map.empty,
    numbered: Set[String] = Set.empty,
    rowEnds: Option[RowEnds] = None,
    vectorFiles: Seq[Path] = Nil,
    readCommit: Option[FileStatus] = None
)

/**
 * The handle that Python holds while it decides: it asks about the commits that came in between and
 * tries versions until one is free. The methods are called over Py4J; what they return is small.
 *
 * @param onCommitted told of the version this became; it must not throw
 */
final class PreparedCommit private[spark] (request: CommitRequest, onCommitted: Long => Unit) {
  private var state: PreparedCommit.State = PreparedCommit.Open
  private val shared = new SharedFiles(request.log, request.rowEnds)

  /** The files of the commit, and what they were made of since the request. */
  private var current = request.changes
  private var vectorFiles = request.vectorFiles

  /** Files that are ours and those of winners, as these left them, by version and canonical path. */
  private val followed = mutable.TreeMap.empty[Long, Map[String, AddFile]]

  /** Where winners have moved rows that this commit read: the first that did, by canonical path. */
  private val movedReads = mutable.Map.empty[String, Long]

  private[spark] def log: DeltaLog = request.log

  /** The version this became, once it did. */
  private[spark] def committedVersion: Option[Long] = synchronized(state) match {
    case PreparedCommit.Committed(version) => Some(version)
    case _ => None
  }

  /** Files with deletion vectors that are of no use if this never becomes a version. */
  private[spark] def ownVectorFiles: Seq[Path] = synchronized(vectorFiles)

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

  def summary(): String = outline.toString

  private[spark] def outline: ObjectNode = Json
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
      "numbered" -> request.numbered,
      "files" -> changes.summary
    )

  /** The newest version's header, from where this commit's log lies: options of a write may say how to get there. */
  def newestHeader(): String = Told.header(request.log.latest(), _ => true).toString

  /**
   * Writes the header's lines and this commit's files as `version`, unless that exists.
   *
   * @param firstRowId the first row id that is free, where the table gives row ids; else negative
   */
  def tryCommit(version: Long, headerLines: String, firstRowId: Long): String = {
    val changes = this.changes
    val adds =
      if (firstRowId < 0) changes.adds
      else FileChanges.withRowIds(
        request.log.table.toString,
        changes.adds,
        firstRowId,
        version
      )
    val fileActions =
      changes.removes.iterator ++ adds.iterator ++ changes.changeFiles.iterator
    val lines = headerLines.linesIterator ++ fileActions.map(ActionJson.write)
    begin()
    val outcome =
      try request.log.tryCommit(version, lines, request.readCommit)
      catch {
        // The log store says so of failures that can have left nothing behind.
        case e: DeltaicThrowable =>
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
    if (state == PreparedCommit.Abandoned) throw noLongerPossible
    state = PreparedCommit.Writing
  }

  private def noLongerPossible: DeltaicThrowable = DeltaicException(
    "DELTAIC_COMMIT_ABANDONED",
    Map("table" -> request.log.table.toString, "operation" -> request.operation)
  )

  private def become(next: PreparedCommit.State): Unit = synchronized { state = next }

  /** What a commit that won the race did, and where it meets this one. */
  def winner(version: Long): String = {
    val commit = request.log.commit(version)
    val adds = commit.adds.toSeq
    val removes = commit.removes.toSeq
    val info = commit.commitInfo.map(_.json)
    val meetings = shared.meetings(changes, ours, adds, removes)
    val disjoint = meetings.filter(_.how == SharedFiles.Disjoint)
    synchronized {
      followed(version) =
        disjoint.flatMap(m => m.theirs.map(theirs => shared.canonical(m.path) -> theirs)).toMap
    }
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
        "addMatchingReads" -> firstNew(adds, removes)(request.readSet.firstMatching),
        "removedFileRead" -> removedRead(version, adds, removes),
        "removedFileRemoved" -> meetings.find(_.how == SharedFiles.Inseparable).map(_.path),
        "movedFile" -> meetings.find(_.how == SharedFiles.Moved).map(_.path),
        "sharedRows" -> meetings.collectFirst {
          case SharedFiles.Meeting(path, _, SharedFiles.Overlapping(rows)) =>
            Json.obj("path" -> path, "rows" -> rows)
        },
        "sharesFiles" -> disjoint.nonEmpty
      )
      .toString
  }

  /**
   * The first file with rows that this commit read and that are gone, wherever others have moved them
   * before: each winner is asked about once, in the order of their versions.
   */
  private def removedRead(
      version: Long,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Option[String] =
    synchronized {
      val (ended, moved) = removes.partition(_.dataChange)
      val lost = request.readSet.firstRead(ended).orElse(ended.find(isMovedRead(_, version)))
      if (request.readSet.firstRead(moved).isDefined || moved.exists(isMovedRead(_, version)))
        adds.filterNot(_.dataChange).foreach { add =>
          movedReads.getOrElseUpdate(shared.canonical(add.path), version)
        }
      lost.map(_.path)
    }

  private def isMovedRead(remove: RemoveFile, version: Long): Boolean =
    synchronized(movedReads.get(shared.canonical(remove.path)).exists(_ <= version))

  /**
   * Whether any of these commits, which have won the race, has deleted a row whose loss matters to this one: whatever
   * rows of a file that holds moved ones, since nothing says which of them were read.
   *
   * @param versions a JSON list
   */
  def hasDeletedRow(versions: String): Boolean = {
    val winners = commits(versions).map { commit =>
      val deleted = commit.removes.filter(_.dataChange).toSeq
      val taken = TakenRows.in(deleted, commit.adds.toSeq, shared.canonical)
      deleted.exists(isMovedRead(_, commit.version)) -> taken
    }.toSeq
    winners.exists { case (wereMoved, _) => wereMoved } ||
    winners.iterator.flatMap { case (_, taken) => taken }
      .grouped(PreparedCommit.FilesInQuery).exists(request.readSet.firstEnded(_).isDefined)
  }

  /**
   * Whether any of these commits, which have won the race, has added a row which this one would have read. Their files
   * are read together.
   *
   * @param versions a JSON list
   */
  def hasMatchingRow(versions: String): Boolean =
    commits(versions)
      .flatMap(winner => shared.withNewRows(ofOthers(winner.adds.toSeq), winner.removes.toSeq))
      .grouped(PreparedCommit.FilesInQuery).exists(request.readSet.firstHolding(_).isDefined)

  /** The commits of a JSON list of versions, each read once when it is asked for. */
  private def commits(versions: String): Iterator[CommitFile] =
    Json.parseStrings(versions).iterator.map(version => request.log.commit(version.toLong))

  /** The first file with new rows that `find` finds. Those that are changed by both hold none, if they go together. */
  private def firstNew(adds: Seq[AddFile], removes: Seq[RemoveFile])(
      find: Seq[AddFile] => Option[AddFile]
  ): Option[String] = {
    val others = ofOthers(adds)
    find(others).flatMap(_ => find(shared.withNewRows(others, removes))).map(_.path)
  }

  private def ofOthers(adds: Seq[AddFile]): Seq[AddFile] =
    adds.filter(add => add.dataChange && !ours(shared.canonical(add.path)))

  /** Ends the same rows in the files that it shares with commits up to this version, as they left them. */
  def follow(version: Long): String = {
    val before = changes
    val theirs = synchronized(followed.rangeTo(version).values.flatten.toMap)
    val (after, written) = shared.follow(before, theirs)
    val (useless, abandoned) = synchronized {
      followed.clear()
      if (state == PreparedCommit.Abandoned) (written, true)
      else {
        current = after
        val all = vectorFiles ++ written
        val unused = shared.unused(all, after)
        vectorFiles = all.diff(unused)
        (unused, false)
      }
    }
    shared.delete(useless)
    if (abandoned) throw noLongerPossible
    after.summary.toString
  }

  private def changes: FileChanges = synchronized(current)

  /** The paths of the changes: those stay the same whomever it follows. */
  private lazy val ours: Set[String] = shared.paths(request.changes)
}

private object PreparedCommit {

  /** How many files of winners a query looks at: as many as memory holds with ease. */
  private val FilesInQuery = 10000

  sealed trait State
  case object Open extends State

  /** A log entry is being written; so it stays if nobody knows how that ended. */
  case object Writing extends State
  final case class Committed(version: Long) extends State

  /** Its files may be gone. */
  case object Abandoned extends State
}
