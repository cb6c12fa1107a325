package io.deltaic.spark.clone

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException, LogPath}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.commit.PreparedCommit
import io.deltaic.spark.restore.MissingFiles

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
    val cloned = source.at(version)
    val readVersion = summary.required("readVersion").longValue
    val current = Option.when(readVersion >= 0)(log.at(readVersion))
    val copied = Option.unless(isShallow)(new CopiedFiles(source.table, cloned.metadata.id))
    val files = new ClonedFiles(
      log.table,
      copied.getOrElse(new ReferencedFiles(source.table, log.table)),
      source.withReadableFiles(cloned)(_.files),
      current.map(log.withReadableFiles(_)(_.files)),
      needsRowIds = PythonCommand.enables(summary, "rowTracking")
    )
    val missing = copied match {
      case Some(placement) =>
        FileCopies.run(spark, log.table, copies(source.table, log.table, placement, files.added))
          .map(_.toString)
      case None if version < source.latest().version =>
        MissingFiles.among(spark, source.table, source.conf, files.added.map(_._1))
      case None => Nil // The newest version of the source needs its files, too.
    }
    missing.headOption.foreach { file =>
      throw DeltaicException(
        "DELTAIC_DATA_FILE_MISSING",
        Map("table" -> source.table.toString, "version" -> version.toString, "file" -> file)
      )
    }
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

  /** Deletion vectors of several files may be in one file. */
  private def copies(
      source: Path,
      clone: Path,
      placement: CopiedFiles,
      added: Seq[(AddFile, AddFile)]
  ): Seq[FileCopy] = {
    def copy(from: Path, to: Path, sizeBytes: Long) =
      FileCopy(from, to, placement.temporary(to), sizeBytes)
    val data = added.map { case (from, to) =>
      copy(
        LogPath.toAbsolute(source, from.path),
        LogPath.toAbsolute(clone, to.path),
        from.sizeBytes
      )
    }
    val vectors = added.flatMap { case (from, to) =>
      for {
        original <- from.deletionVector.flatMap(_.absolutePath(source))
        copied <- to.deletionVector.flatMap(_.absolutePath(clone))
      } yield copy(original, copied, 0L)
    }
    (data ++ vectors).distinctBy(_.to)
  }
}
