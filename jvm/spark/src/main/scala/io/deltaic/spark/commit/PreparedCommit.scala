package io.deltaic.spark.commit

import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log.{CommitFile, WriteOutcome}
import io.deltaic.protocol._
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.lineage.{InputFiles, Lineage, RevertedCompactions}
import io.deltaic.spark.util.Json

/**
 * What a write has read of its table.
 *
 * @param version -1 if the table did not exist
 * @param commit the commit file of the version, if there is one
 */
private[spark] final case class TableRead(
    version: Long,
    readSet: ReadSet,
    commit: Option[FileStatus] = None
)

/**
 * Everything about a finished write that its commit needs.
 *
 * @param rebaseSettings set if the commit can be rebased onto files that other commits change
 * @param vectorFiles the files that it wrote deletion vectors to
 */
private[spark] final case class CommitRequest(
    log: DeltaLog,
    read: TableRead,
    operation: OperationInfo,
    plan: ObjectNode,
    isBlindAppend: Boolean,
    changes: CommitFiles,
    engineMetrics: Map[String, Long] = Map.empty,
    identity: IdentityValues = IdentityValues(),
    rebaseSettings: Option[RebaseSettings] = None,
    vectorFiles: Seq[Path] = Nil
) {
  private val definition = plan.path("definition")

  /** Whether the table has deletion vectors enabled. */
  def writesVectors: Boolean = TableFeatures.isActive(
    ActionBody.protocol(definition.required("protocol")),
    ActionBody.metadata(definition.required("metaData")),
    "deletionVectors"
  )

  /** Whether it changes rows; if not, it only moves them to other files. */
  def changesData: Boolean = plan.path("changesData").asBoolean(true)
}

/**
 * A commit that is ready to be written as a version of the table. Python holds it while it commits: it checks the winning
 * commits for conflicts, and tries versions until one is free. The results of its methods are small.
 *
 * @param onCommitted called with the committed version; it must not throw
 */
final class PreparedCommit private[spark] (request: CommitRequest, onCommitted: Long => Unit) {
  private var state: PreparedCommit.State = PreparedCommit.Open
  private val rebase = new DeletionVectorRebase(request.log, request.rebaseSettings)

  /** None if no row of a file can be deleted by a vector. */
  private lazy val relocatedRows = request.rebaseSettings.filter(_ => request.writesVectors)
    .map(new RelocatedRowsRebase(rebase, _))
  private val relocatesRows = request.rebaseSettings.exists(_.relocatesRows)

  /** The files of the commit, as rebased since the request. */
  private var current = request.changes
  private var vectorFiles = request.vectorFiles

  /**
   * Files that both this and a winning commit change, as the latter left them, by version and canonical path. A
   * file without remaining rows is only among them if this commit has moved its rows.
   */
  private val rebasable = mutable.TreeMap.empty[Long, Map[String, Option[AddFile]]]

  /** Files to which winners copied rows that this commit has read: the first such version, by canonical path. */
  private val movedReads = mutable.Map.empty[String, Long]

  private def readSet: ReadSet = request.read.readSet

  private val reverted = new RevertedCompactions(rebase.canonical, CommitFiles.rowsIn)

  private[spark] def log: DeltaLog = request.log

  /** The committed version, once there is one. */
  private[spark] def committedVersion: Option[Long] = synchronized(state) match {
    case PreparedCommit.Committed(version) => Some(version)
    case _ => None
  }

  /** The files that it adds to the table; those that only get another deletion vector are not among them. */
  private[spark] def newFiles: Seq[AddFile] = {
    val now = changes
    val removed = now.removes.iterator.map(_.path).toSet
    now.adds.filterNot(add => removed(add.path))
  }

  /** Deletion vector files to be deleted if this is never committed. */
  private[spark] def ownVectorFiles: Seq[Path] = synchronized(vectorFiles)

  /**
   * Makes sure that this is never committed, so that its files can be deleted.
   *
   * @return false if a log entry exists, or may exist
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

  private val tries = new AtomicLong

  /** How often it was tried to commit a version. */
  private[spark] def attempts: Long = tries.get

  private[spark] def outline: ObjectNode = Message.of("CommitSummary")(
    "table" -> request.log.table.toString,
    "readVersion" -> request.read.version,
    "operation" -> request.operation.json,
    "plan" -> request.plan,
    "isBlindAppend" -> request.isBlindAppend,
    "readsWholeTable" -> readSet.wholeTable,
    "engineMetrics" -> request.engineMetrics,
    "files" -> changes.summary,
    "identity" -> request.identity.json
  )

  /** The newest version's non-file actions, read with the file system options of this commit's log. */
  def newestNonFileActions(): String =
    PrefetchedState.nonFileActions(request.log.latest(), _ => true).toString

  /**
   * Writes the non-file actions and this commit's files as `version`, unless that version exists.
   *
   * @param firstRowId the first free row ID, if the table has row tracking; else negative
   */
  def tryCommit(version: Long, nonFileLines: String, firstRowId: Long): String = {
    tries.incrementAndGet()
    val changes = this.changes
    val adds =
      if (firstRowId < 0) changes.adds
      else CommitFiles.withRowIds(
        request.log.table.toString,
        changes.adds,
        firstRowId,
        version
      )
    val fileActions =
      changes.removes.iterator ++ adds.iterator ++ changes.changeFiles.iterator
    val lines = nonFileLines.linesIterator ++ fileActions.map(ActionJson.write)
    begin()
    val outcome =
      try request.log.tryCommit(version, lines, request.read.commit)
      catch {
        // The log store throws this only for failures that cannot have left a log entry.
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
    Map("table" -> request.log.table.toString, "operation" -> request.operation.name)
  )

  private def become(next: PreparedCommit.State): Unit = synchronized { state = next }

  /** Describes a winning commit, and its conflicts with this one. */
  def winningCommit(version: Long): String = {
    val commit = request.log.commit(version)
    val adds = commit.adds.toSeq
    val removes = commit.removes.toSeq
    val info = commit.commitInfo.map(_.json)
    val again = revertedByWinner(version, adds, removes)
    val isReverted = rebaseOntoRelocatedRows(commit, adds, removes)
    val conflicts =
      if (isReverted)
        reverted.firstRemovedConcurrently(changes.removes, adds, removes).toSeq.map { gone =>
          DeletionVectorRebase.FileConflict(gone.path, None, DeletionVectorRebase.Moved)
        }
      else {
        val others = adds.filterNot(add => again(rebase.canonical(add.path)))
        rebase.conflicts(changes, isChanged, others, removes).map(afterReverting)
      }
    val disjoint = conflicts.filter(_.kind == DeletionVectorRebase.Disjoint)
    synchronized {
      rebasable(version) =
        disjoint.map(c => rebase.canonical(c.path) -> c.theirs).toMap
    }
    Message
      .of("WinningCommit")(
        "version" -> version,
        "timestampMs" -> commit.timestampMs,
        // Another writer's commitInfo may hold anything.
        "operation" -> info.map(_.path("operation")).filter(_.isTextual),
        "isBlindAppend" -> info.map(_.path("isBlindAppend")).filter(_.isBoolean),
        "protocol" -> commit.protocol.map(ActionBody.write),
        "metaData" -> commit.metadata.map(ActionBody.write),
        "txns" -> commit.actions.collect { case t: SetTransaction => t.appId -> t.version }.toMap,
        "inCommitTimestampMs" -> commit.commitInfo.flatMap(_.inCommitTimestampMs),
        "domains" -> commit.actions.collect { case d: DomainMetadata =>
          d.domain -> Option.unless(d.removed)(d.configuration)
        }.toMap,
        "numAdded" -> adds.size,
        "addedFileWeWouldRead" -> firstNew(adds, removes)(readSet.firstAddedByStatistics),
        "removedFileWeRead" -> removedRead(version, adds, removes),
        "removedFileWeChange" -> conflicts.find(_.kind == DeletionVectorRebase.Inseparable)
          .map(_.path),
        "compactedFileWeChange" -> conflicts.find(_.kind == DeletionVectorRebase.Moved).map(_.path),
        "concurrentlyDeletedRows" -> conflicts.collectFirst {
          case DeletionVectorRebase.FileConflict(path, _, DeletionVectorRebase.Overlapping(rows)) =>
            Message.of("ConcurrentRowDeletion")("path" -> path, "count" -> rows)
        },
        "needsDeletionVectorRebase" -> (disjoint.nonEmpty || isReverted || again.nonEmpty)
      )
      .toString
  }

  /**
   * The first file with deleted rows that this commit has read, wherever earlier winners have copied them.
   * This is called once for each winner, in the order of their versions.
   */
  private def removedRead(
      version: Long,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Option[String] =
    synchronized {
      val (deleted, moved) = removes.partition(_.dataChange)
      val lost = readSet.firstRemovedByStatistics(deleted)
        .orElse(deleted.find(isMovedRead(_, version)))
      if (
        readSet.firstRemovedByStatistics(moved).isDefined || moved.exists(isMovedRead(
          _,
          version
        ))
      )
        adds.filterNot(_.dataChange).foreach { add =>
          movedReads.getOrElseUpdate(rebase.canonical(add.path), version)
        }
      lost.map(_.path)
    }

  private def isMovedRead(remove: RemoveFile, version: Long): Boolean =
    synchronized(movedReads.get(rebase.canonical(remove.path)).exists(_ <= version))

  /**
   * Whether any of these winning commits has deleted a row that this one depends on. Of a file with relocated rows every
   * row counts, since the log does not record which of them were read.
   *
   * @param versions a JSON list
   */
  def hasDeletedRow(versions: String): Boolean = {
    val winners = commits(versions).map { commit =>
      val deleted = commit.removes.filter(_.dataChange).toSeq
      val lost = ConcurrentlyDeletedRows.in(deleted, commit.adds.toSeq, rebase.canonical)
      deleted.exists(isMovedRead(_, commit.version)) -> lost
    }.toSeq
    winners.exists { case (wereMoved, _) => wereMoved } ||
    winners.iterator.flatMap { case (_, lost) => lost }
      .grouped(PreparedCommit.FilesInQuery).exists(readSet.firstRemovedByRows(_).isDefined)
  }

  /**
   * Whether any of these winning commits has added a row that this one would have read. Their files are read
   * together.
   *
   * @param versions a JSON list
   */
  def hasMatchingRow(versions: String): Boolean =
    commits(versions)
      .flatMap(winner => rebase.withNewRows(ofOthers(winner.adds.toSeq), winner.removes.toSeq))
      .grouped(PreparedCommit.FilesInQuery).exists(readSet.firstAddedByRows(_).isDefined)

  /** The commits of a JSON list of versions, each read once, lazily. */
  private def commits(versions: String): Iterator[CommitFile] =
    Json.parseStrings(versions).iterator.map(version => request.log.commit(version.toLong))

  /** The first file with new rows that `find` finds. Files that both change have none if the changes do not conflict. */
  private def firstNew(adds: Seq[AddFile], removes: Seq[RemoveFile])(
      find: Seq[AddFile] => Option[AddFile]
  ): Option[String] = {
    val others = ofOthers(adds)
    find(others).flatMap(_ => find(rebase.withNewRows(others, removes))).map(_.path)
  }

  /** A file of another commit that this one adds again, to revert a compaction, still has the other's rows. */
  private def ofOthers(adds: Seq[AddFile]): Seq[AddFile] =
    adds.filter { add =>
      val path = rebase.canonical(add.path)
      add.dataChange && !originalPaths(path) && (!isChanged(path) || reverted.isAddedAgain(path))
    }

  /**
   * If a winning commit has relocated rows that this one deletes to other files, the deletions follow them. Where they cannot,
   * since this commit has rewritten the files, it reverts the compaction of these files, unless it is a compaction
   * itself. If the log does not tell where the rows are, this commit stays as it is, and conflicts.
   *
   * @return whether it reverts all that the winner did to files that this commit changes
   */
  private def rebaseOntoRelocatedRows(
      winner: CommitFile,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Boolean = {
    val hasMoved = removes.exists(r => !r.dataChange && isChanged(rebase.canonical(r.path)))
    val mayBeFound = request.rebaseSettings.exists(_.lookup.isDefined) ||
      adds.exists(add => add.tags.contains(Lineage.Tag) || add.tags.contains(InputFiles.Tag))
    if (!hasMoved || !mayBeFound) false
    else {
      val followed = relocatedRows.filterNot(_ => relocatesRows).flatMap { moved =>
        rebaseOnto(winner.version - 1)
        moved.ofDeletions(changes, adds, removes)
      }
      followed.foreach { case (after, written) => adopt(after, written) }
      followed.isEmpty && request.changesData && revert(winner, adds, removes)
    }
  }

  private def revert(
      winner: CommitFile,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Boolean = {
    rebaseOnto(winner.version - 1)
    val now = changes
    val deletionTimestampMs = now.removes.flatMap(_.deletionTimestampMs).maxOption.getOrElse(0L)
    val done =
      reverted.revert(now.removes, adds, removes, deletionTimestampMs, winner.timestampMs)
    done.foreach { case (outputs, inputs) =>
      adopt(now.copy(removes = now.removes ++ outputs, adds = now.adds ++ inputs), Nil)
    }
    done.isDefined
  }

  /**
   * If a winning commit has reverted a compaction that this one reverts, too, there is nothing left to do for it.
   *
   * @return the canonical paths of the files that it has added again
   */
  private def revertedByWinner(
      version: Long,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Set[String] = {
    val done = reverted.revertedBy(adds, removes)
    if (done.again.nonEmpty) {
      rebaseOnto(version - 1)
      val now = changes
      adopt(
        now.copy(
          removes = now.removes.filterNot(r => done.outputs(rebase.canonical(r.path))),
          adds = now.adds.filterNot(a => done.others(rebase.canonical(a.path)))
        ),
        Nil
      )
    }
    done.again
  }

  /** A file that this commit removes to revert it was changed by another commit: those changes would be lost. */
  private def afterReverting(
      conflict: DeletionVectorRebase.FileConflict
  ): DeletionVectorRebase.FileConflict =
    if (reverted.isOutput(conflict.path)) conflict.copy(kind = DeletionVectorRebase.Inseparable)
    else conflict

  /** Rebases the deletions onto the files as winning commits up to this version left them. */
  def rebaseDeletionVectors(version: Long): String = {
    rebaseOnto(version)
    changes.summary.toString
  }

  private def rebaseOnto(version: Long): Unit = {
    val before = changes
    val theirs = synchronized(rebasable.rangeTo(version).values.flatten.toMap)
    if (theirs.nonEmpty) {
      val (after, written) =
        if (relocatesRows)
          relocatedRows.get.ofMoves(request.changes, before, theirs)
            .getOrElse(throw lostRows(version, theirs.keys.min))
        else
          rebase.rebaseOnto(before, theirs.collect { case (path, Some(file)) => path -> file })
      adopt(after, written)
    }
  }

  /** Others have deleted rows of a file up to this version that this commit has moved, and cannot find. */
  private def lostRows(version: Long, file: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_CONCURRENT_CHANGE_OF_MOVED_ROWS",
    Map(
      "operation" -> request.operation.name,
      "table" -> request.log.table.toString,
      "version" -> version.toString,
      "winnerOperation" -> request.log.commit(version).commitInfo
        .map(_.json.path("operation").asText).getOrElse("unknown"),
      "detail" -> file
    )
  )

  /** @param written the files of deletion vectors that were written for these changes */
  private def adopt(after: CommitFiles, written: Seq[Path]): Unit = {
    val (orphans, abandoned) = synchronized {
      rebasable.clear()
      if (state == PreparedCommit.Abandoned) (written, true)
      else {
        current = after
        rebasedPaths = Some(rebase.paths(after))
        val all = vectorFiles ++ written
        val unused = rebase.unused(all, after)
        vectorFiles = all.diff(unused)
        (unused, false)
      }
    }
    rebase.delete(orphans)
    if (abandoned) throw noLongerPossible
  }

  /** The files of the commit, as rebased onto the winning commits so far. */
  private[spark] def changes: CommitFiles = synchronized(current)

  /** The canonical paths of the changes, before and after they followed relocated rows. */
  private lazy val originalPaths: Set[String] = rebase.paths(request.changes)
  private var rebasedPaths: Option[Set[String]] = None

  private def isChanged(path: String): Boolean =
    synchronized(rebasedPaths).getOrElse(originalPaths)(path)
}

private object PreparedCommit {

  /** The number of files of winning commits in one query, bounded by memory. */
  private val FilesInQuery = 10000

  sealed trait State
  case object Open extends State

  /** A log entry is being written; the state remains if the outcome of that is unknown. */
  case object Writing extends State
  final case class Committed(version: Long) extends State

  /** Its files may have been deleted. */
  case object Abandoned extends State
}
