package io.deltaic.log

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.protocol._

/**
 * The actions of one commit, in the order of its file.
 *
 * @param timestampMs when the file was written, as its file system says
 */
final class CommitFile(val version: Long, val timestampMs: Long, val actions: Seq[Action]) {
  def protocol: Option[Protocol] = actions.collectFirst { case p: Protocol => p }
  def metadata: Option[Metadata] = actions.collectFirst { case m: Metadata => m }
  def commitInfo: Option[CommitInfo] = actions.collectFirst { case c: CommitInfo => c }
  def adds: Iterator[AddFile] = actions.iterator.collect { case a: AddFile => a }
  def removes: Iterator[RemoveFile] = actions.iterator.collect { case r: RemoveFile => r }
}

/** Reads commit files. */
private[deltaic] final class CommitReader(table: Path, store: LogStore) {

  /** Every known action of the commit. */
  def read(version: Long, file: FileStatus): CommitFile =
    new CommitFile(version, file.getModificationTime, actions(version, file, withCommitInfo = true))

  /** What replay needs of the commit: everything but its provenance. */
  def readForReplay(version: Long, file: FileStatus): CommitFile =
    new CommitFile(
      version,
      file.getModificationTime,
      actions(version, file, withCommitInfo = false)
    )

  /** The commitInfo alone. It is nearly always the first action, so reading mostly ends there. */
  def readCommitInfo(version: Long, file: FileStatus): Option[CommitInfo] =
    parse(version, file, withCommitInfo = true) { parser =>
      var info = Option.empty[CommitInfo]
      while (info.isEmpty && parser.hasNext)
        parser.next() match {
          case c: CommitInfo => info = Some(c)
          case _ => ()
        }
      info
    }

  private def actions(version: Long, file: FileStatus, withCommitInfo: Boolean): Seq[Action] =
    parse(version, file, withCommitInfo) { parser =>
      val found = Vector.newBuilder[Action]
      while (parser.hasNext) {
        val action = parser.next()
        if (action != null) found += action
      }
      found.result()
    }

  private def parse[A](version: Long, file: FileStatus, withCommitInfo: Boolean)(
      read: ActionParser => A
  ): A = {
    val json = ActionJson.factory.createParser(store.read(file.getPath))
    try read(new ActionParser(json, withCommitInfo))
    catch {
      case e: JsonProcessingException =>
        throw new DeltaicException(
          "DELTAIC_LOG_ENTRY_MALFORMED",
          Map(
            "table" -> table.toString,
            "version" -> version.toString,
            "file" -> file.getPath.getName,
            "line" -> Option(e.getLocation).fold("?")(_.getLineNr.toString),
            "reason" -> e.getOriginalMessage
          ),
          e
        )
    } finally json.close()
  }
}
