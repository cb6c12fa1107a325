package io.deltaic.log

import org.apache.hadoop.fs.{FileStatus, Path}

/** Which files of a log nothing needs any more (Protocol § Metadata Cleanup). It only looks; it deletes nothing. */
private[deltaic] final class ExpiredFiles(table: Path, store: LogStore) {
  import FileNames._

  private val directory = logDirectory(table)
  private val sidecars = sidecarDirectory(directory)

  /** Every complete checkpoint, of the lowest version first. */
  def checkpoints: Seq[Checkpoint] = listed.allCheckpoints

  /**
   * What is superseded by a checkpoint, ascending by name: entries, checkpoints and checksums before it, and compactions
   * that begin at it or before (step 3). Its own entry stays, for that tells when the version was committed.
   */
  def before(checkpointVersion: Long): Iterator[FileStatus] =
    store.listFrom(directory, firstOf(0)).filter { file =>
      classify(file.getPath.getName).exists {
        case CompactedName(first, _) => first <= checkpointVersion
        case other => other.version < checkpointVersion
      }
    }

  /** Files that a writer which died has left under temporary names. */
  def abandoned(olderThanMs: Long): Iterator[FileStatus] =
    (store.listFrom(directory, "") ++ store.listFrom(sidecars, ""))
      .filter(f => isTemporary(f.getPath.getName) && f.getModificationTime < olderThanMs)

  /** Sidecars that no checkpoint names and that are old enough not to belong to one in the making (step 5). */
  def unnamedSidecars(named: Set[String], olderThanMs: Long): Iterator[FileStatus] =
    store.listFrom(sidecars, "").filter { f =>
      val name = f.getPath.getName
      !f.isDirectory && name.endsWith(".parquet") && !named(name) &&
      f.getModificationTime < olderThanMs
    }

  private def listed: Listed = {
    val log = new Listed
    store.listFrom(directory, firstOf(0)).foreach(log.add)
    log.complete()
  }
}
