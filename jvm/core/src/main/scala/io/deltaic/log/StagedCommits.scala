package io.deltaic.log

import org.apache.hadoop.fs.Path

import io.deltaic.protocol._

/**
 * The commits of a table with a commit coordinator that are files of their own before they are published under the name of
 * their version. Who coordinates is not asked: a commit is written to one of these folders before the coordinator hears of
 * it, and its file stays there until after it is published, so that none is missed. One that no coordinator has accepted
 * is taken for one that is not published.
 */
private[deltaic] final class StagedCommits(table: Path, store: LogStore) {
  import StagedCommits._

  private val directory = FileNames.logDirectory(table)

  /** Fails if a version after `version` may be committed already and is not published. */
  def requireNone(version: Long, protocol: Protocol, metadata: Metadata): Unit =
    if (isCoordinated(protocol, metadata)) {
      val unpublished = Folders.flatMap { folder =>
        store.listFrom(new Path(directory, folder), FileNames.firstOf(version + 1)).flatMap { file =>
          file.getPath.getName match {
            case staged(digits) => Some(digits.toLong -> s"$folder/${file.getPath.getName}")
            case _ => None
          }
        }
      }.filter { case (staged, _) =>
        // It may have been published since the log was listed.
        staged > version && store.status(FileNames.commit(directory, staged)).isEmpty
      }
      if (unpublished.nonEmpty) throw DeltaicException(
        "DELTAIC_COMMITS_UNPUBLISHED",
        Map(
          "table" -> table.toString,
          "version" -> version.toString,
          "files" -> unpublished.map(_._2).sorted.mkString(", ")
        )
      )
    }
}

private[deltaic] object StagedCommits {

  /** The newer and the older name. */
  private val Folders = Seq("_staged_commits", "_commits")

  private val staged = """(\d{20})\..+\.json""".r

  /** Whether commits of the table may be in these folders. */
  def isCoordinated(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.supports(protocol, "coordinatedCommits") || metadata.configuration
      .get("delta.coordinatedCommits.commitCoordinator-preview")
      .exists(_.trim.nonEmpty)
}
