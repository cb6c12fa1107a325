package io.deltaic.log

import java.io.IOException

import scala.reflect.ClassTag
import scala.util.Using

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.protocol._

/**
 * The actions of one commit, in the order of its file.
 *
 * @param timestampMs the modification time of the file
 */
final class CommitFile(val version: Long, val timestampMs: Long, val actions: Seq[Action]) {
  def protocol: Option[Protocol] = actions.collectFirst { case p: Protocol => p }
  def metadata: Option[Metadata] = actions.collectFirst { case m: Metadata => m }
  def commitInfo: Option[CommitInfo] = actions.collectFirst { case c: CommitInfo => c }
  def adds: Iterator[AddFile] = actions.iterator.collect { case a: AddFile => a }
  def removes: Iterator[RemoveFile] = actions.iterator.collect { case r: RemoveFile => r }
}

/** Reads commit files, and files of actions in the same form. */
private[deltaic] final class CommitReader(table: Path, store: LogStore) {
  import CommitReader._

  /** Every known action of the commit. */
  def read(version: Long, file: FileStatus): CommitFile =
    new CommitFile(version, file.getModificationTime, actions(version, file, ActionsWanted.All))

  /** The result of `read` for the known actions of the commit, of which one is in memory at a time. */
  def readEach[A](version: Long, file: FileStatus)(read: Iterator[Action] => A): A =
    parse(version, file, ActionsWanted.All)(parser => read(each(parser)))

  /**
   * What replay needs of a commit, or of a compaction that replaces several. A compaction that cannot be read, or that
   * contradicts itself, is ignored: the commits hold the same actions.
   */
  def readForReplay(entry: LogEntry): Seq[CommitFile] =
    if (!entry.isCompacted) Seq(replayed(entry.file, entry.lastVersion))
    else {
      try {
        val compacted = replayed(entry.file, entry.lastVersion)
        val first = FileNames.versionOf(entry.commits.head)
        new CompactionCheck(table, first, entry.lastVersion)
          .contradiction(compacted.actions)
          .foreach(reason => throw new IOException(reason))
        Seq(compacted)
      } catch {
        case e @ (_: DeltaicThrowable | _: IOException) =>
          logger.warn(
            "Table {}: the log compaction {} is not used, its commits are read instead: {}",
            table,
            entry.file.getPath.getName,
            Printable.messageOf(e)
          )
          entry.commits.map(file => replayed(file, FileNames.versionOf(file)))
      }
    }

  /** The actions of a V2 checkpoint in JSON, without a commit's rules. */
  def readCheckpoint(version: Long, file: FileStatus): Seq[Action] =
    parseAll(version, file, ActionsWanted.ForReplay)

  /** Only the commitInfo. It is nearly always the first action, so usually little else is read. */
  def readCommitInfo(version: Long, file: FileStatus): Option[CommitInfo] =
    parse(version, file, ActionsWanted.All) { parser =>
      var info = Option.empty[CommitInfo]
      while (info.isEmpty && parser.hasNext)
        parser.next() match {
          case c: CommitInfo => info = Some(c)
          case _ => ()
        }
      info
    }

  private def replayed(file: FileStatus, version: Long): CommitFile = new CommitFile(
    version,
    file.getModificationTime,
    actions(version, file, ActionsWanted.ForReplay)
  )

  private def actions(version: Long, file: FileStatus, wanted: ActionsWanted): Seq[Action] = {
    val found = parseAll(version, file, wanted)
    requireOne[Protocol](version, file, "protocol", found)
    requireOne[Metadata](version, file, "metaData", found)
    found
  }

  /**
   * Protocol § Delta Log Entries: a commit has at most one of these. Two different ones are ambiguous; the same one
   * written twice is harmless.
   */
  private def requireOne[A <: Action: ClassTag](
      version: Long,
      file: FileStatus,
      kind: String,
      actions: Seq[Action]
  ): Unit = {
    val different = actions.iterator.collect { case a: A => a }.toSet.size
    if (different > 1) {
      throw DeltaicException(
        "DELTAIC_LOG_ENTRY_AMBIGUOUS",
        Map(
          "table" -> table.toString,
          "version" -> version.toString,
          "file" -> file.getPath.getName,
          "count" -> different.toString,
          "kind" -> kind
        )
      )
    }
  }

  private def parseAll(version: Long, file: FileStatus, wanted: ActionsWanted): Seq[Action] =
    parse(version, file, wanted)(each(_).toVector)

  private def each(parser: ActionParser): Iterator[Action] =
    Iterator.continually(parser).takeWhile(_.hasNext).map(_.next()).filter(_ != null)

  private def parse[A](version: Long, file: FileStatus, wanted: ActionsWanted)(
      read: ActionParser => A
  ): A = Using.resource(store.open(file.getPath)) { content =>
    val json = ActionJson.factory.createParser(content)
    try read(new ActionParser(json, wanted))
    catch {
      case e: JsonProcessingException =>
        throw DeltaicException(
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

private object CommitReader {
  private val logger = LoggerFactory.getLogger(classOf[CommitReader])
}
