package io.deltaic.spark.optimize

import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{AddFile, DeltaicException, LogPath}
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.curve.RowOrder
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.scan.files.{FileSplits, ListedFiles, ScanFilters}
import io.deltaic.spark.schema.{ScanColumns, TableSchema}
import io.deltaic.spark.write.files.{DataWriteSpec, JoinedFile}
import io.deltaic.spark.write.{NewFiles, WriteTransaction}

/**
 * Copies the live rows of groups of files to new files, in the order of the groups or along a curve. With row
 * tracking, the rows keep their row IDs and commit versions.
 *
 * A group is written in parts, so that all tasks have something to do even if there is only one group. Then
 * the parts are packed into files by the sizes that they turned out to have, and joined as bytes.
 *
 * @param order of the rows in each group; none if they stay in their order
 * @param stored how the files that are rewritten name and store the columns
 */
private[optimize] final class FileRewrite(
    transaction: WriteTransaction,
    settings: OptimizeSettings,
    order: Option[RowOrder],
    stored: TableSchema
) {
  import FileRewrite.UnknownRows

  private val spark = transaction.spark
  private val table = transaction.log.table
  private val spec = transaction.copySpec

  /** @return the new files of all groups, and what they hold */
  def run(groups: IndexedSeq[FileGroup]): Seq[(OutputFile, AddFile)] =
    try {
      val files = groups.flatMap(_.files)
      val scan = scanOf(files, columns)
      val written = order match {
        case None =>
          val parts = plan(groups, scan, partBytes(files))
          parts.zip(write(scan, parts, files.size))
        case Some(order) => writeOrdered(order, groups, scan, partBytes(files))
      }
      requireAllRows(groups, written)
      val packed = if (canJoin) settings else settings.copy(maxFileBytes = 0L)
      val outputs = written.groupBy(_._1.group).toSeq.sortBy(_._1)
        .flatMap { case (_, ofGroup) => OutputFile.pack(ofGroup, packed, order.isDefined) }
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

  private def scanOf(files: IndexedSeq[AddFile], columns: StructType): TableScan = {
    val scan = new TableScan(
      spark,
      ListedFiles(table, transaction.readVersion, files),
      stored,
      columns,
      ScanFilters.none,
      CaseInsensitiveStringMap.empty
    )
    if (scan.needsDeletionVectorFilter) scan.withDeletionVectors else scan
  }

  /** Whether parts are joined to files; if not, each is a file of its own. Shredded ones may have different columns. */
  private lazy val canJoin = !spec.shredsVariants && JoinedFile.isPossible(spec.hadoopConf)

  private def partBytes(files: Seq[AddFile]): Long = {
    val bytes = files.map(_.sizeBytes).sum
    if (canJoin) RewritePart.sizeOf(bytes, slots, settings, areOrdered = order.isDefined)
    else settings.maxFileBytes
  }

  private def slots: Int = SessionInternals.leafParallelism(spark)

  private def plan(
      groups: IndexedSeq[FileGroup],
      scan: TableScan,
      partBytes: Long
  ): Seq[RewritePart] = {
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
    val reader = readerOf(scan)
    val writer = new PartWriter(spec, reader, columns.fieldNames.map(reader.columns.fieldIndex))
    FileRewrite.inTasks(transaction, settings, s"rewrite $numFiles files", parts)(writer.write)
  }

  private def readerOf(scan: TableScan): PartReader =
    new PartReader(scan.createReaderFactory(), scan.readSchema(), scan.deletionVectors)

  /** @param partBytes about how much of the inputs a part is */
  private def writeOrdered(
      order: RowOrder,
      groups: IndexedSeq[FileGroup],
      scan: TableScan,
      partBytes: Long
  ): Seq[(RewritePart, WrittenPart)] = {
    val reader = readerOf(scan)
    val sampled = scanOf(groups.flatMap(_.files), StructType(order.roots.map(columns(_))))
    val rewrite = new OrderedRewrite(
      transaction,
      order,
      readerOf(sampled),
      reader,
      spec.fileOrdinals.map(i => reader.columns.fieldIndex(columns(i).name)),
      settings.maxTasks
    )
    val inputBytes = RewritePart.inputSizeOf(groups.map(_.bytes).sum, slots, settings)
    // Splits hold the constants of the columns that their own scan reads.
    val samples = plan(groups, sampled, inputBytes).groupBy(_.group)
    val inputs = plan(groups, scan, inputBytes).groupBy(_.group)
    rewrite.write(groups.indices.map { group =>
      val rows = groups(group).files.map(file => CommitFiles.liveRows(file).getOrElse(UnknownRows))
      val numParts = RewritePart.count(groups(group).bytes, partBytes).toInt
      OrderedGroup(samples(group), inputs(group), rows.sum, numParts)
    })
  }

  /**
   * Settings of Spark let readers skip missing or damaged files. A query may do that, but a rewrite would lose
   * the rows for good. If the rows have been ordered, it is not known which of the files of the group they are from.
   */
  private def requireAllRows(
      groups: IndexedSeq[FileGroup],
      parts: Seq[(RewritePart, WrittenPart)]
  ): Unit =
    if (order.isDefined) {
      val found = parts.groupMapReduce(_._1.group)(_._2.rowsOfSplits.sum)(_ + _)
      for {
        (FileGroup(_, files), group) <- groups.zipWithIndex
        expected = files.map(CommitFiles.liveRows)
        if expected.forall(_.isDefined)
      } {
        val others = if (files.size == 1) "" else s" or one of ${files.size - 1} others"
        requireRows(files.head.path + others, expected.flatten.sum, found.getOrElse(group, 0L))
      }
    } else {
      val found = parts.flatMap { case (part, written) =>
        part.splits.map(split => (part.group, split.file)).zip(written.rowsOfSplits)
      }.groupMapReduce(_._1)(_._2)(_ + _)
      for {
        (FileGroup(_, files), group) <- groups.zipWithIndex
        (file, i) <- files.zipWithIndex
        expected <- CommitFiles.liveRows(file)
      } requireRows(file.path, expected, found.getOrElse((group, i), 0L))
    }

  private def requireRows(files: String, expected: Long, found: Long): Unit =
    if (found != expected)
      throw DeltaicException(
        "DELTAIC_REWRITE_ROW_COUNT",
        Map(
          "table" -> table.toString,
          "file" -> files,
          "expected" -> expected.toString,
          "found" -> found.toString
        )
      )

  private def join(outputs: Seq[OutputFile]): Seq[(OutputFile, AddFile)] = {
    val (several, single) = outputs.partition(_.parts.size > 1)
    val spec = this.spec
    val joined =
      FileRewrite.inTasks(
        transaction,
        settings,
        s"join the parts of ${several.size} files",
        several
      )((task, output) => FileRewrite.joined(spec, task, output))
    transaction.discard(several.flatMap(_.parts).map(part => LogPath.toAbsolute(table, part.path)))
    val files = several.zip(joined).toMap
    outputs.map(output => output -> files.getOrElse(output, output.parts.head))
  }
}

private object FileRewrite {

  /** Of a file for which the log has no number. */
  private val UnknownRows = 1L << 20

  /** Outside of the class, so that tasks do not capture it. */
  def inTasks[A <: AnyRef, B](
      transaction: WriteTransaction,
      settings: OptimizeSettings,
      phase: String,
      items: Seq[A]
  )(work: (Int, A) => B): Seq[B] =
    JobInternals.inExecutors[(A, Int), B](
      transaction.spark,
      transaction.jobs(phase),
      items.zipWithIndex,
      settings.maxTasks
    ) { case (item, task) => Iterator.single(work(task, item)) }

  def joined(spec: DataWriteSpec, task: Int, output: OutputFile): AddFile =
    JoinedFile.write(spec, task, output.partitionValues, output.parts)
}
