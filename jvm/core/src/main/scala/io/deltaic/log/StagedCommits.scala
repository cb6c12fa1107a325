package io.deltaic.log

import org.apache.hadoop.fs.Path

import io.deltaic.protocol._

/**
 * The staged commits of a table with a commit coordinator: files that are not yet published under the name of their
 * version. The coordinator is not contacted: a commit is written to one of these folders before it is sent to the
 * coordinator, and its file stays there until after it is published, so none is missed. A commit that no coordinator
 * accepted is treated as unpublished.
 */
private[deltaic] final class StagedCommits(table: Path, store: LogStore) {
  import StagedCommits._

  private val directory = FileNames.logDirectory(table)

  /** Fails if a version after `version` may be committed but unpublished. */
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

  /** The newer and the older name of the folder. */
  private val Folders = Seq("_staged_commits", "_commits")

  private val staged = """(\d{20})\..+\.json""".r

  /** Whether commits of the table may be in these folders. */
  def isCoordinated(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.supports(protocol, "coordinatedCommits") || metadata.configuration
      .get("delta.coordinatedCommits.commitCoordinator-preview")
      .exists(_.trim.nonEmpty)
}
