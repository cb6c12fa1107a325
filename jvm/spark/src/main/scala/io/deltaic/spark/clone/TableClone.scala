package io.deltaic.spark.clone

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException, LogPath}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.catalog.{AsOf, TimeTravel}
import io.deltaic.spark.commit.PreparedCommit

/** CLONE, as far as it depends on files. Python decides on protocol, metadata and domains. */
private[spark] object TableClone {

  /**
   * A commit after which a table has the files of a version of another table. Those of a deep clone are copied first.
   *
   * @param log of the clone
   * @param summary the commit as Python has planned it
   */
  def prepare(
      spark: SparkSession,
      log: DeltaLog,
      source: DeltaLog,
      version: Long,
      isShallow: Boolean,
      summary: ObjectNode
  ): PreparedCommit = {
    val cloned = TimeTravel.open(spark, source, AsOf.Version(version))
    val readVersion = summary.required("readVersion").longValue
    val current = Option.when(readVersion >= 0)(log.at(readVersion))
    val placement =
      if (isShallow) new SharedFiles(source.table, log.table)
      else new CopiedFiles(source.table, cloned.metadata.id)
    val files = source.withReadableFiles(cloned) { of =>
      def clonedFiles(now: Option[Snapshot]) =
        new ClonedFiles(placement, of.files, now.map(_.files))
      current.fold(clonedFiles(None))(log.withReadableFiles(_)(now => clonedFiles(Some(now))))
    }
    if (!isShallow) copy(spark, source.table, log.table, version, files)
    PythonCommand.prepare(
      spark,
      log,
      summary,
      files.actions(System.currentTimeMillis),
      metrics = files.metrics(isShallow)
    )
  }

  /** Whether a file in the directory of a deep clone is a copy, which an interrupted run may have made. */
  def isCopy(source: Snapshot): Path => Boolean =
    new CopiedFiles(source.table, source.metadata.id).isCopy

  private def copy(
      spark: SparkSession,
      source: Path,
      clone: Path,
      version: Long,
      files: ClonedFiles
  ): Unit = {
    val missing = FileCopies.run(spark, clone, copies(source, clone, files.added))
    missing.headOption.foreach { file =>
      throw DeltaicException(
        "DELTAIC_DATA_FILE_MISSING",
        Map(
          "table" -> source.toString,
          "version" -> version.toString,
          "file" -> file.toString
        )
      )
    }
  }

  /** Deletion vectors of several files may be in one file. */
  private def copies(
      source: Path,
      clone: Path,
      added: Seq[(AddFile, AddFile)]
  ): Seq[FileCopy] = {
    val data = added.map { case (from, to) =>
      FileCopy(
        LogPath.toAbsolute(source, from.path),
        LogPath.toAbsolute(clone, to.path),
        from.sizeBytes
      )
    }
    val vectors = added.flatMap { case (from, to) =>
      for {
        original <- from.deletionVector.flatMap(_.absolutePath(source))
        copied <- to.deletionVector.flatMap(_.absolutePath(clone))
      } yield FileCopy(original, copied, 0L)
    }
    (data ++ vectors).distinct
  }
}
