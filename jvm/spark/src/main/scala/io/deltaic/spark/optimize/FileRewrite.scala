package io.deltaic.spark.optimize

import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{AddFile, DeltaicException, LogPath}
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.scan.files.{FileSplits, ListedFiles, ScanFilters}
import io.deltaic.spark.schema.ScanColumns
import io.deltaic.spark.write.files.{DataWriteSpec, JoinedFile}
import io.deltaic.spark.write.{NewFiles, WriteTransaction}

/**
 * Copies the live rows of groups of files to new files, in the order of the groups. With row tracking, the rows
 * keep their row IDs and commit versions.
 *
 * A group is written in parts, so that all tasks have something to do even if there is only one group. Then
 * the parts are packed into files by the sizes that they turned out to have, and joined as bytes.
 */
private[optimize] final class FileRewrite(
    transaction: WriteTransaction,
    settings: OptimizeSettings
) {
  private val spark = transaction.spark
  private val table = transaction.log.table
  private val spec = transaction.copySpec

  /** @return the new files of all groups, and what they hold */
  def run(groups: IndexedSeq[FileGroup]): Seq[(OutputFile, AddFile)] =
    try {
      val scan = scanOf(groups.flatMap(_.files))
      val parts = plan(groups, scan)
      val written = write(scan, parts, groups.iterator.map(_.files.size).sum)
      requireAllRows(groups, parts.zip(written))
      val outputs = parts.zip(written).groupBy(_._1.group).toSeq.sortBy(_._1)
        .flatMap { case (_, ofGroup) => OutputFile.pack(ofGroup, settings) }
      join(outputs)
    } catch {
      case e: Throwable =>
        // Some tasks may have finished, and the driver does not know what they wrote.
        transaction.abort(NewFiles.none, tasksLost = true)
        throw e
    }

  private lazy val columns: StructType = {
    val tracked = ScanColumns.rowTracking.take(spec.numRowTrackingColumns)
    StructType(transaction.schema.all ++ tracked)
  }

  private def scanOf(files: IndexedSeq[AddFile]): TableScan = {
    val scan = new TableScan(
      spark,
      ListedFiles(table, transaction.readVersion, files),
      transaction.schema,
      columns,
      ScanFilters.none,
      CaseInsensitiveStringMap.empty
    )
    if (scan.needsDeletionVectorFilter) scan.withDeletionVectors else scan
  }

  private def plan(groups: IndexedSeq[FileGroup], scan: TableScan): Seq[RewritePart] = {
    val bytes = groups.iterator.flatMap(_.files).map(_.sizeBytes).sum
    val partBytes = RewritePart.sizeOf(bytes, SessionInternals.leafParallelism(spark), settings)
    val zone = FileSplits.sessionZone(spark)
    groups.zipWithIndex.flatMap { case (FileGroup(partitionValues, files), group) =>
      val splits = files.zipWithIndex.flatMap { case (file, i) =>
        FileSplits.ofFile(table, file, scan.fileConstants, zone, partBytes, scan.hadoopConf)
          .map(InputSplit(i, _))
      }
      RewritePart.of(group, partitionValues, splits, partBytes)
    }
  }

  private def write(
      scan: TableScan,
      parts: Seq[RewritePart],
      numFiles: Int
  ): Seq[WrittenPart] = {
    val read = scan.readSchema()
    val writer = new PartWriter(
      spec,
      scan.createReaderFactory(),
      read,
      columns.fieldNames.map(read.fieldIndex),
      scan.deletionVectors
    )
    FileRewrite.inTasks(transaction, s"rewrite $numFiles files", parts)(writer.write)
  }

  /**
   * Settings of Spark let readers skip missing or damaged files. A query may do that, but a rewrite would lose
   * the rows for good.
   */
  private def requireAllRows(
      groups: IndexedSeq[FileGroup],
      parts: Seq[(RewritePart, WrittenPart)]
  ): Unit = {
    val found = parts.flatMap { case (part, written) =>
      part.splits.map(split => (part.group, split.file)).zip(written.rowsOfSplits)
    }.groupMapReduce(_._1)(_._2)(_ + _)
    for {
      (FileGroup(_, files), group) <- groups.zipWithIndex
      (file, i) <- files.zipWithIndex
      expected <- CommitFiles.liveRows(file)
      rows = found.getOrElse((group, i), 0L)
      if rows != expected
    } throw DeltaicException(
      "DELTAIC_REWRITE_ROW_COUNT",
      Map(
        "table" -> table.toString,
        "file" -> file.path,
        "expected" -> expected.toString,
        "found" -> rows.toString
      )
    )
  }

  private def join(outputs: Seq[OutputFile]): Seq[(OutputFile, AddFile)] = {
    val (several, single) = outputs.partition(_.parts.size > 1)
    val spec = this.spec
    val joined =
      FileRewrite.inTasks(transaction, s"join the parts of ${several.size} files", several) {
        (task, output) => FileRewrite.joined(spec, task, output)
      }
    transaction.discard(several.flatMap(_.parts).map(part => LogPath.toAbsolute(table, part.path)))
    val files = several.zip(joined).toMap
    outputs.map(output => output -> files.getOrElse(output, output.parts.head))
  }
}

private object FileRewrite {

  /** Outside of the class, so that tasks do not capture it. */
  def inTasks[A <: AnyRef, B](
      transaction: WriteTransaction,
      phase: String,
      items: Seq[A]
  )(work: (Int, A) => B): Seq[B] =
    JobInternals.inExecutors[(A, Int), B](
      transaction.spark,
      transaction.jobs(phase),
      items.zipWithIndex
    ) { case (item, task) => Iterator.single(work(task, item)) }

  def joined(spec: DataWriteSpec, task: Int, output: OutputFile): AddFile =
    JoinedFile.write(spec, task, output.partitionValues, output.parts)
}
