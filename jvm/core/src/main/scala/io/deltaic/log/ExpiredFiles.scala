package io.deltaic.log

import org.apache.hadoop.fs.{FileStatus, Path}

/** Finds the files of a log that are no longer needed (Protocol § Metadata Cleanup). It deletes nothing. */
private[deltaic] final class ExpiredFiles(table: Path, store: LogStore) {
  import FileNames._

  private val directory = logDirectory(table)
  private val sidecars = sidecarDirectory(directory)

  /** Every complete checkpoint, ascending by version. */
  def checkpoints: Seq[Checkpoint] = listed.allCheckpoints

  /**
   * The files that a checkpoint supersedes, ascending by name: entries, checkpoints and checksums before it, and
   * compactions that begin at or before its version (step 3). The entry of its own version stays, because it holds the
   * time of the commit.
   */
  def before(checkpointVersion: Long): Iterator[FileStatus] =
    store.listFrom(directory, firstOf(0)).filter { file =>
      classify(file.getPath.getName).exists {
        case CompactedName(first, _) => first <= checkpointVersion
        case other => other.version < checkpointVersion
      }
    }

  /** Temporary files that crashed writers left behind. */
  def abandoned(olderThanMs: Long): Iterator[FileStatus] =
    (store.listFrom(directory, "") ++ store.listFrom(sidecars, ""))
      .filter(f => isTemporary(f.getPath.getName) && f.getModificationTime < olderThanMs)

  /**
   * Sidecars that no checkpoint references and that are too old to belong to a checkpoint that is being written (step
   * 5).
   */
  def unreferencedSidecars(referenced: Set[String], olderThanMs: Long): Iterator[FileStatus] =
    store.listFrom(sidecars, "").filter { f =>
      val name = f.getPath.getName
      !f.isDirectory && name.endsWith(".parquet") && !referenced(name) &&
      f.getModificationTime < olderThanMs
    }

  private def listed: Listed = {
    val log = new Listed
    store.listFrom(directory, firstOf(0)).foreach(log.add)
    log.complete()
  }
}
