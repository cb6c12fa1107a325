package io.deltaic.maintenance

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.log._
import io.deltaic.protocol._
import io.deltaic.replay.FileKey

/**
 * Writes log compaction files: the reconciled actions of a range of commits (Protocol § Log Compaction Files).
 *
 * @param guard see [[CheckpointWriter]]
 */
private[maintenance] final class CompactionWriter(table: Path, store: LogStore, guard: () => Unit) {

  private val directory = FileNames.logDirectory(table)
  private val reader = new CommitReader(table, store)

  /**
   * Compacts the commits of these versions, both ends inclusive.
   *
   * Only actions that are superseded within the range are dropped. An older `add`, domain or transaction may precede
   * the range, so every `remove`, and the removal of a domain, is retained.
   *
   * @return None if a commit is missing; `AlreadyExists` if there is such a file already
   */
  def write(first: Long, last: Long): Option[WriteOutcome] = {
    val files = (first to last).map(v => v -> store.status(FileNames.commit(directory, v)))
    Option.when(files.forall(_._2.isDefined)) {
      var protocol = Option.empty[Action]
      var metadata = Option.empty[Action]
      val transactions = mutable.LinkedHashMap.empty[String, Action]
      val domains = mutable.LinkedHashMap.empty[String, Action]
      val newest = mutable.LinkedHashMap.empty[String, Action]
      for ((version, file) <- files; action <- reader.read(version, file.get).actions)
        action match {
          case f: FileAction => newest(FileKey.of(table, f.path, f.dvId)) = f
          case p: Protocol => protocol = Some(p)
          case m: Metadata => metadata = Some(m)
          case t: SetTransaction => transactions(t.appId) = t
          case d: DomainMetadata => domains(d.domain) = d
          case _: AddCdcFile | _: CommitInfo | _: CheckpointMetadata | _: Sidecar => ()
        }
      val actions = protocol.iterator ++ metadata ++ transactions.values ++ domains.values ++
        newest.values
      store.writeBesideIfAbsent(FileNames.compaction(directory, first, last), guard) { out =>
        actions.foreach(action => out.write(s"${ActionJson.write(action)}\n".getBytes(UTF_8)))
      }
    }
  }
}
