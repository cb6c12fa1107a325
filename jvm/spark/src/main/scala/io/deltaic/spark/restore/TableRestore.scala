package io.deltaic.spark.restore

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, VacuumedVersion}
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.catalog.{AsOf, TimeTravel}
import io.deltaic.spark.commit.PreparedCommit
import io.deltaic.spark.util.Cancellation

/** RESTORE, as far as it depends on files. Python decides on protocol, metadata and domains. */
private[spark] object TableRestore {

  /**
   * The newest version that was committed at or before a timestamp in the session's time zone. After the last commit, it
   * is the version of that.
   */
  def versionAt(spark: SparkSession, log: DeltaLog, timestamp: String): Long = {
    val timestampMs = TimeTravel.parseTimestampMs(spark, log, timestamp)
    try log.versionAt(timestampMs)
    catch {
      case e: DeltaicThrowable if e.condition == "DELTAIC_TIMESTAMP_AFTER_LATEST" =>
        log.latest().version
    }
  }

  /**
   * A commit that restores the files of a version. Nothing is prepared if one of them no longer exists, unless
   * `spark.sql.files.ignoreMissingFiles` is true.
   *
   * @param summary the commit as Python has planned it
   */
  def prepare(
      spark: SparkSession,
      log: DeltaLog,
      version: Long,
      summary: ObjectNode
  ): PreparedCommit = {
    val cancellation = Cancellation.of("RESTORE", log.table)
    val older = TimeTravel.open(spark, log, AsOf.Version(version))
    val newest = log.at(summary.required("readVersion").longValue)
    val restored = log.withReadableFiles(older) { before =>
      log.withReadableFiles(newest) { now =>
        cancellation.check()
        new RestoredFiles(
          log.table,
          now.files,
          before.files,
          PythonCommand.enables(summary, "rowTracking"),
          Option.when(PythonCommand.supports(summary, "rowTracking"))(
            new LaterRowIds(log, version, newest.version)
          )
        )
      }
    }
    cancellation.check()
    if (!spark.sessionState.conf.ignoreMissingFiles) requireFiles(spark, log, version, restored)
    cancellation.check()
    PythonCommand.prepare(
      spark,
      log,
      summary,
      restored.actions(System.currentTimeMillis),
      metrics = restored.metrics
    )
  }

  private def requireFiles(
      spark: SparkSession,
      log: DeltaLog,
      version: Long,
      restored: RestoredFiles
  ): Unit = {
    val missing = MissingFiles.among(spark, log.table, log.conf, restored.added)
    if (missing.nonEmpty)
      throw DeltaicException(
        "DELTAIC_RESTORED_FILES_MISSING",
        Map(
          "table" -> log.table.toString,
          "version" -> version.toString,
          "count" -> missing.size.toString,
          "reason" -> VacuumedVersion.find(log, version).fold(
            "VACUUM or another program deleted them"
          )(_.reason),
          "files" -> missing.take(MaxNamed).mkString(", ")
        )
      )
  }

  /** The maximum number of missing files that an error names. */
  private val MaxNamed = 100
}
