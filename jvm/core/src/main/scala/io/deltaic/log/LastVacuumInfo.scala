package io.deltaic.log

import java.io.IOException

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.ActionJson

/**
 * `_last_vacuum_info`: up to which commit VACUUM has deleted the files that commits removed. VACUUM LITE begins after it.
 *
 * The name of the file and its first field are those of delta-spark, which ignores the others. There only VACUUM LITE
 * writes it; Deltaic's VACUUM FULL does so as well.
 *
 * @param version the newest commit whose removed files are deleted
 * @param cutoffMs the time before which removed files are deleted; None if delta-spark has written the file
 * @param isLiteUsed whether VACUUM LITE has run, for which log cleanup then retains the commits after `version`
 */
private[deltaic] final case class LastVacuumInfo(
    version: Long,
    cutoffMs: Option[Long],
    isLiteUsed: Boolean
)

private[deltaic] object LastVacuumInfo {
  private val Name = "_last_vacuum_info"
  private val Version = "latestCommitVersionOutsideOfRetentionWindow"
  private val Cutoff = "cutoffTimestamp"
  private val IsLiteUsed = "liteUsed"

  def path(logDirectory: Path): Path = new Path(logDirectory, Name)

  /** None if the file is missing or invalid. */
  def read(logDirectory: Path, store: LogStore): Option[LastVacuumInfo] =
    try
      ActionJson.mapper.readTree(store.read(path(logDirectory))) match {
        case info: ObjectNode if info.path(Version).canConvertToLong =>
          val cutoffMs = Option(info.path(Cutoff)).filter(_.canConvertToLong).map(_.longValue)
          val isLiteUsed = info.path(IsLiteUsed).asBoolean(true)
          Some(LastVacuumInfo(info.path(Version).longValue, cutoffMs, isLiteUsed))
        case _ => None
      }
    catch { case _: IOException => None }

  def write(logDirectory: Path, store: LogStore, info: LastVacuumInfo): Unit = {
    val json = ActionJson.mapper.createObjectNode().put(Version, info.version)
    info.cutoffMs.foreach(json.put(Cutoff, _))
    json.put(IsLiteUsed, info.isLiteUsed)
    store.replace(path(logDirectory), ActionJson.mapper.writeValueAsBytes(json))
  }
}
