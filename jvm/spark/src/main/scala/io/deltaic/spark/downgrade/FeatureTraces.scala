package io.deltaic.spark.downgrade

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, FileAction, LogPath, RemoveFile}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.commit.{CommitFiles, PreparedCommit}

/** What a feature has left in the file actions of a table, and commits that remove it. */
private[spark] object FeatureTraces {

  /** Whether files of a version use the feature. */
  def inFiles(log: DeltaLog, version: Long, feature: String): Boolean =
    log.withReadableFiles(log.at(version))(_.adds.exists(uses(_, feature)))

  private[downgrade] def uses(file: FileAction, feature: String): Boolean =
    (feature, file) match {
      case ("deletionVectors", _) => file.deletionVector.isDefined
      case ("rowTracking", add: AddFile) =>
        add.baseRowId.isDefined || add.defaultRowCommitVersion.isDefined
      case _ => false
    }

  /** A commit that adds the files with row IDs again without them; none if no file has any. */
  def withoutRowIds(
      spark: SparkSession,
      log: DeltaLog,
      summary: ObjectNode
  ): Option[PreparedCommit] = {
    val adds = log.withReadableFiles(log.at(summary.required("readVersion").longValue)) {
      _.adds.filter(uses(_, "rowTracking"))
        .map(_.copy(baseRowId = None, defaultRowCommitVersion = None, dataChange = false))
        .toVector
    }
    Option.when(adds.nonEmpty) {
      PythonCommand.prepare(spark, log, summary, CommitFiles(adds = adds))
    }
  }

  /**
   * A commit of tombstones for the files of deletion vectors that only tombstones reference; none if all have one. A
   * writer without the feature takes these files for unused ones, and would delete them before older versions expire.
   */
  def vectorTombstones(
      spark: SparkSession,
      log: DeltaLog,
      summary: ObjectNode
  ): Option[PreparedCommit] = {
    val table = log.table
    val deletionTimestampMs = System.currentTimeMillis()
    val removes = log.withReadableFiles(log.at(summary.required("readVersion").longValue)) { s =>
      val tombstones = s.tombstones.toVector
      val known = tombstones.iterator.map(remove => LogPath.canonical(table, remove.path)).toSet
      tombstones.iterator
        .flatMap(_.deletionVector)
        .filterNot(_.isInline)
        .flatMap(_.file(table).toOption)
        .map(LogPath.relativize(table, _))
        .filterNot(LogPath.isAbsolute) // It belongs to another table.
        .distinct
        .filterNot(path => known(LogPath.canonical(table, path)))
        .map(RemoveFile(_, Some(deletionTimestampMs), dataChange = false))
        .toVector
    }
    Option.when(removes.nonEmpty) {
      PythonCommand.prepare(spark, log, summary, CommitFiles(removes = removes))
    }
  }
}
