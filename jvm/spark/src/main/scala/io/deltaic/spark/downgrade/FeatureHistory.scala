package io.deltaic.spark.downgrade

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.maintenance.Maintenance
import io.deltaic.protocol.{AddFile, Metadata, RemoveFile, TableFeatures}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.Message

/** The versions in a table's log that only readers with a feature can read. */
private[spark] final class FeatureHistory(log: DeltaLog, maintenance: Maintenance) {

  /**
   * The newest version up to `last` that uses the feature, as a `HistoricUse`; none if no version does.
   *
   * @param protectedVersion versions before it use the feature `checkpointProtection`
   */
  def newestUse(feature: String, last: Long, protectedVersion: Long): Option[ObjectNode] = {
    val earliest = log.earliestVersion
    val found =
      if (feature == "checkpointProtection")
        Option.when(earliest < protectedVersion)(protectedVersion - 1)
      else (inCheckpoints(feature, last) ++ inEntries(feature, earliest, last)).maxOption
    found.map { version =>
      // The log up to the version can be deleted when a checkpoint after it is old enough.
      val checkpoint = maintenance.checkpointVersions
        .filter(v => v > version && v >= protectedVersion).minOption
      Message.of("HistoricUse")(
        "version" -> version,
        "replacedAtMs" -> checkpoint.map(log.at(_).timestampMs)
      )
    }
  }

  private def inCheckpoints(feature: String, last: Long): Option[Long] =
    if (feature == "v2Checkpoint") maintenance.v2CheckpointVersions.filter(_ <= last).maxOption
    else None

  /** In the state of the earliest version, and in the commits after it. */
  private def inEntries(feature: String, earliest: Long, last: Long): Option[Long] = {
    val first = log.at(earliest)
    var isActive = isUsedBy(first.metadata, feature)
    var newest = Option.when {
      isActive || log.withReadableFiles(first)(_.adds.exists(FeatureTraces.uses(_, feature)))
    }(earliest)
    log.commitFiles(math.max(earliest, log.earliestCommit), last).foreach { commit =>
      commit.metadata.foreach(metadata => isActive = isUsedBy(metadata, feature))
      val isUsed = isActive || commit.actions.exists {
        case add: AddFile => FeatureTraces.uses(add, feature)
        case remove: RemoveFile => FeatureTraces.uses(remove, feature)
        case _ => false
      }
      if (isUsed) newest = Some(commit.version)
    }
    newest
  }

  /** Type widening that is enabled and not used yet leaves nothing in the log. */
  private def isUsedBy(metadata: Metadata, feature: String): Boolean = {
    val counted =
      if (feature != "typeWidening") metadata
      else metadata.copy(configuration = metadata.configuration - "delta.enableTypeWidening")
    TableFeatures.inUse(counted)(feature)
  }
}
