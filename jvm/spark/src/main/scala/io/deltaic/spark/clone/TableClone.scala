package io.deltaic.spark.clone

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException, DeltaicThrowable, LogPath}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.commit.PreparedCommit
import io.deltaic.spark.convert.ParquetTable

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
  ): PreparedCommit =
    prepare(spark, log, new ClonedVersion(source, version), isShallow, summary)

  /** A commit after which a table has Parquet files. */
  def prepare(
      spark: SparkSession,
      log: DeltaLog,
      source: ParquetTable,
      isShallow: Boolean,
      summary: ObjectNode
  ): PreparedCommit = {
    val cloned = new ClonedParquet(source, PythonCommand.metadata(summary).configuration)
    prepare(spark, log, cloned, isShallow, summary)
  }

  private def prepare(
      spark: SparkSession,
      log: DeltaLog,
      source: ClonedSource,
      isShallow: Boolean,
      summary: ObjectNode
  ): PreparedCommit = {
    val readVersion = summary.required("readVersion").longValue
    val current = Option.when(readVersion >= 0)(log.at(readVersion))
    val copied = Option.unless(isShallow)(source.copies)
    val files = new ClonedFiles(
      log.table,
      copied.getOrElse(new ReferencedFiles(source.root, log.table)),
      source,
      current.map(log.withReadableFiles(_)(_.files)),
      needsRowIds = PythonCommand.enables(summary, "rowTracking")
    )
    copied match {
      case Some(placement) =>
        FileCopies.run(spark, log.table, copies(source.root, log.table, placement, files.added))
          .headOption.foreach(problem => throw copyError(log.table, source, problem))
      case None =>
        source.missing(spark, files.added.map(_._1)).headOption
          .foreach(file => throw source.missingError(file))
    }
    PythonCommand.prepare(
      spark,
      log,
      summary,
      files.actions(System.currentTimeMillis),
      metrics = files.metrics(isShallow)
    )
  }

  private def copyError(
      clone: Path,
      source: ClonedSource,
      problem: CopyProblem
  ): DeltaicThrowable = {
    val CopyProblem(file, size) = problem
    size.fold(source.missingError(file.from.toString)) { actual =>
      DeltaicException(
        "DELTAIC_CLONED_FILE_DAMAGED",
        Map(
          "file" -> file.from.toString,
          "table" -> clone.toString,
          "actual" -> actual.toString,
          "expected" -> file.sizeBytes.toString
        )
      )
    }
  }

  /** Whether a file in the directory of a deep clone is a copy, which an interrupted run may have made. */
  def isCopy(source: Snapshot): Path => Boolean = CopiedFiles.ofTable(source).isCopy

  /** As for a table. */
  def isCopyOfParquet(folder: Path): Path => Boolean = CopiedFiles.ofParquet(folder).isCopy

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
