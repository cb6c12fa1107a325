package io.deltaic.log

import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * A checkpoint with all of its top-level files: one file, or the parts of a multi-part one. A file with a classic name
 * may follow the V1 or the V2 spec; only its content shows which.
 */
final case class Checkpoint(version: Long, files: Seq[FileStatus]) {

  /** Identifies the checkpoint, also among those of the same version. */
  def name: String = files.head.getPath.getName

  /** The size of its top-level files, without sidecars. */
  def sizeBytes: Long = files.map(_.getLen).sum
}

/** A log compaction file: the reconciled actions of commits, both ends inclusive (Protocol § Log Compaction Files). */
final case class Compaction(first: Long, last: Long, file: FileStatus)

/**
 * One step of replay: a commit, or a compaction that replaces several.
 *
 * @param commits the commit files that it replaces, ascending
 */
final case class LogEntry(file: FileStatus, commits: Seq[FileStatus]) {
  def lastVersion: Long = FileNames.versionOf(commits.last)
  def isCompacted: Boolean = file ne commits.head
}

/**
 * The files that make up a version: a checkpoint, if any, and every commit after it, without a gap.
 *
 * @param version the version that the files make up
 * @param commits ascending, from the version after the checkpoint, or from 0
 * @param compactions those that replace some of `commits`
 * @param lastCommit the commit file of `version`; None if cleanup left only its checkpoint
 * @param checksum the version checksum file of `version`
 */
final case class LogSegment(
    table: Path,
    version: Long,
    checkpoint: Option[Checkpoint],
    commits: Seq[FileStatus],
    lastCommit: Option[FileStatus],
    compactions: Seq[Compaction] = Nil,
    checksum: Option[FileStatus] = None
) {
  def files: Seq[FileStatus] = checkpoint.toSeq.flatMap(_.files) ++ commits

  /** The commit file of `version`; if only a checkpoint of it is left, the last file of that. */
  def lastFile: FileStatus = lastCommit.getOrElse(files.last)

  /** The commits one by one. */
  def commitEntries: Seq[LogEntry] = commits.map(file => LogEntry(file, Seq(file)))

  /** The steps of replay: the longest compaction that begins at a version, else its commit. */
  def entries: Seq[LogEntry] =
    if (compactions.isEmpty) commitEntries
    else {
      val longest = compactions.groupBy(_.first).map { case (first, all) =>
        first -> all.maxBy(_.last)
      }
      val entries = Vector.newBuilder[LogEntry]
      var i = 0
      while (i < commits.size) {
        val compaction = longest.get(FileNames.versionOf(commits(i)))
        val end = compaction.fold(i + 1)(c => i + 1 + (c.last - c.first).toInt)
        entries += LogEntry(compaction.fold(commits(i))(_.file), commits.slice(i, end))
        i = end
      }
      entries.result()
    }

  /** This segment without the commits up to this version, inclusive. */
  def after(base: Long): LogSegment = copy(
    checkpoint = None,
    commits = commits.dropWhile(FileNames.versionOf(_) <= base),
    compactions = compactions.filter(_.first > base)
  )
}
