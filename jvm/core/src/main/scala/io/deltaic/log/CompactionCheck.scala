package io.deltaic.log

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.protocol._

/**
 * Detects a log compaction file that is not the reconciliation of its commits (Protocol § Log Compaction Files). It
 * reads only the compaction, so it cannot prove that one is correct. The commits hold the same actions, so a false
 * alarm costs time but loses no rows.
 */
private[log] final class CompactionCheck(table: Path, first: Long, last: Long) {

  private val seen = mutable.HashSet.empty[Any]

  /** The contradiction, if there is one. */
  def contradiction(actions: Seq[Action]): Option[String] =
    if (actions.isEmpty) Some("it holds no action")
    else
      actions.iterator.flatMap(contradictionIn).nextOption().orElse {
        val missing = Seq("protocol", "metaData").filterNot(seen)
        Option.when(first == 0 && missing.nonEmpty)(
          s"it begins at version 0 and holds no ${missing.mkString(" and no ")}"
        )
      }

  /** Action reconciliation leaves one action per key. */
  private def contradictionIn(action: Action): Option[String] = action match {
    case file: FileAction => contradictionIn(file)
    case transaction: SetTransaction => twice("txn of", transaction.appId)
    case domain: DomainMetadata => twice("domainMetadata of", domain.domain)
    case _: Protocol => twice("protocol")
    case _: Metadata => twice("metaData")
    case _: CheckpointMetadata | _: Sidecar => Some("it holds actions of a checkpoint")
    case _: AddCdcFile | _: CommitInfo => None
  }

  private def contradictionIn(file: FileAction): Option[String] = {
    val path = LogPath.canonical(table, file.path)
    val vector = file.dvId.fold("")(id => s" with deletion vector $id")
    def of(kind: String) = s"it holds two $kind of ${file.path}"
    if (!seen.add(("file", path, file.dvId))) Some(of("actions") + vector)
    else
      file match {
        // One data file is in a table at most once, under the newest of its deletion vectors.
        case _: AddFile if !seen.add(("add", path)) => Some(of("adds"))
        case add: AddFile if add.defaultRowCommitVersion.exists(_ > last) =>
          Some(s"it holds an add of ${add.path} by a later version")
        case _ => None
      }
  }

  private def twice(kind: String, key: String = ""): Option[String] =
    Option.when(!seen.add(if (key.isEmpty) kind else (kind, key)))(
      s"it holds two actions $kind $key".trim
    )
}
