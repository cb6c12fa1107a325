package io.deltaic.spark.rowlevel

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.deltaic.WriteInternals

import io.deltaic.dv.{DeletionVector, DeletionVectorFileWriter, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, LogPath}
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.util.ParquetFiles
import io.deltaic.spark.write.files.DataWriteSpec

/**
 * A file from which rows are deleted.
 *
 * @param numRecords rows in the data file, if its statistics have it
 * @param before the existing deletion vector
 */
private[rowlevel] final case class FileWithDeletedRows(
    path: String,
    sizeBytes: Long,
    numRecords: Option[Long],
    before: Option[DeletionVectorDescriptor],
    deleted: Seq[Bitmap],
    updated: Seq[Bitmap]
) {

  /** The memory that the merge of these takes. */
  def bitmapBytes: Long =
    before.fold(0L)(_.sizeBytes.toLong) + deleted.map(_.sizeBytes).sum + updated.map(
      _.sizeBytes
    ).sum

  def isInline: Boolean = (deleted ++ updated).forall(_.isInstanceOf[Bitmap.Inline])
}

private[rowlevel] object FileWithDeletedRows {

  /** @param filesRead by path */
  def of(
      filesRead: Map[String, AddFile],
      deleted: Seq[FoundRows],
      updated: Seq[FoundRows]
  ): Seq[FileWithDeletedRows] = {
    val deletedIn = deleted.groupMap(_.file)(_.rows)
    val updatedIn = updated.groupMap(_.file)(_.rows)
    (deletedIn.keySet ++ updatedIn.keySet).toSeq.sorted.map { path =>
      val file = filesRead(path)
      FileWithDeletedRows(
        path,
        file.sizeBytes,
        CommitFiles.rows(file),
        file.deletionVector,
        deletedIn.getOrElse(path, Nil),
        updatedIn.getOrElse(path, Nil)
      )
    }
  }

  /** Groups consecutive files, with at most this many bytes of bitmaps in a group, unless it is a single file. */
  def groups(touched: Seq[FileWithDeletedRows], bytes: Long): Seq[Seq[FileWithDeletedRows]] = {
    val groups = ArrayBuffer.empty[ArrayBuffer[FileWithDeletedRows]]
    var groupBytes = 0L
    touched.foreach { file =>
      if (groups.isEmpty || groupBytes + file.bitmapBytes > bytes) {
        groups += ArrayBuffer.empty
        groupBytes = 0L
      }
      groups.last += file
      groupBytes += file.bitmapBytes
    }
    groups.iterator.map(_.toSeq).toSeq
  }
}

/**
 * The result of the merge for a file.
 *
 * @param outcome with the vector of all deleted rows, old and new
 * @param numRecords rows in the data file
 * @param deleted the number of deleted rows, and `updated` of updated ones
 * @param separateVectors the vectors of the deleted rows and of the updated rows, if there are both
 *   and they are requested separately
 */
private[rowlevel] final case class MergedFile(
    path: String,
    outcome: MergedFile.Outcome,
    numRecords: Long,
    deleted: Long,
    updated: Long,
    separateVectors: Option[(DeletionVectorDescriptor, DeletionVectorDescriptor)]
) {

  def keptVector: Option[DeletionVectorDescriptor] = outcome match {
    case MergedFile.Kept(vector) => Some(vector)
    case _ => None
  }

  def rewriteVector: Option[DeletionVectorDescriptor] = outcome match {
    case MergedFile.Rewritten(vector) => Some(vector)
    case _ => None
  }
}

private[rowlevel] object MergedFile {
  sealed trait Outcome

  /** No row is left. */
  case object Removed extends Outcome

  /** The file is rewritten without its deleted rows: few rows are left, or the table has no deletion vectors. */
  final case class Rewritten(vector: DeletionVectorDescriptor) extends Outcome

  final case class Kept(vector: DeletionVectorDescriptor) extends Outcome
}

/**
 * @param vectorFiles files with the vectors of the files that are kept
 * @param temporaryFiles files with other vectors, which are deleted after the commit
 */
private[rowlevel] final case class MergedFiles(
    files: Seq[MergedFile],
    vectorFiles: Seq[String],
    temporaryFiles: Seq[String]
)

private[rowlevel] object MergedFiles {
  def of(parts: Seq[MergedFiles]): MergedFiles = MergedFiles(
    parts.flatMap(_.files),
    parts.flatMap(_.vectorFiles),
    parts.flatMap(_.temporaryFiles)
  )
}

/**
 * Merges the bitmaps that tasks report for a file with its old deletion vector, and writes the result as
 * its new deletion vector. It runs on the driver or in a task.
 *
 * @param writesVectors whether files with remaining rows get vectors
 * @param separatesUpdates whether deleted and updated rows are reported separately
 * @param inMemory whether vectors that only this statement needs stay in memory
 * @param maxInlineBytes the maximum size of a vector that is stored inline in the log
 */
private[rowlevel] final case class BitmapMerge(
    spec: DataWriteSpec,
    settings: VectorSettings,
    writesVectors: Boolean,
    separatesUpdates: Boolean,
    inMemory: Boolean,
    maxInlineBytes: Long
) {

  /** @param onStart receives a function that deletes all written files if the merge is aborted */
  def apply(touched: Seq[FileWithDeletedRows], onStart: (() => Unit) => Unit): MergedFiles = {
    val store = new DeletionVectorStore(spec.hadoopConf)
    val vectors = spec.newVectorFile(store, settings.maxFileBytes)
    val temporary = spec.newVectorFile(store, settings.maxFileBytes)
    def abort(): Unit =
      try vectors.abort()
      finally temporary.abort()
    onStart(() => abort())
    try {
      val read = reader(store, touched)
      val files = touched.map(merged(_, read, vectors, placeTemporary(store, temporary)))
      vectors.close()
      temporary.close()
      MergedFiles(files, vectors.files.map(_.toString), temporary.files.map(_.toString))
    } catch {
      case e: Throwable =>
        abort()
        throw e
    }
  }

  private def placeTemporary(
      store: DeletionVectorStore,
      temporary: DeletionVectorFileWriter
  ): DeletionVector => DeletionVectorDescriptor =
    if (inMemory) store.inline else vector => temporary.place(vector)

  private def merged(
      touched: FileWithDeletedRows,
      read: (String, Bitmap) => DeletionVector,
      vectors: DeletionVectorFileWriter,
      placeTemporary: DeletionVector => DeletionVectorDescriptor
  ): MergedFile = {

    /** The union of the bitmaps, and the sum of their cardinalities. */
    def union(bitmaps: Seq[Bitmap]): (DeletionVector, Long) = {
      val rows = new DeletionVector
      val counts = bitmaps.map { bitmap =>
        val found = read(touched.path, bitmap)
        rows.or(found)
        found.cardinality
      }
      (rows, counts.sum)
    }
    val (deleted, _) = union(touched.deleted)
    val (updated, numUpdates) = union(touched.updated)
    val all = deleted.copy().or(updated)
    // Spark checks for rows with two matches within a task, but a skewed source is split over several tasks.
    if (all.cardinality < deleted.cardinality + numUpdates) throw WriteInternals.matchedTwice
    touched.before.foreach(vector => all.or(read(touched.path, Bitmap.Stored(vector))))
    val numRecords = touched.numRecords.getOrElse(rowsInFooter(touched.path))
    val outcome =
      if (all.cardinality >= numRecords) MergedFile.Removed
      else if (
        !writesVectors || settings.isHeavilyDeleted(touched.sizeBytes, numRecords, all.cardinality)
      ) MergedFile.Rewritten(placeTemporary(all))
      else MergedFile.Kept(vectors.place(all, maxInlineBytes))
    val areBoth = !deleted.isEmpty && !updated.isEmpty
    val separateVectors = Option.when(separatesUpdates && areBoth)(
      (placeTemporary(deleted), placeTemporary(updated))
    )
    MergedFile(
      touched.path,
      outcome,
      numRecords,
      deleted.cardinality,
      updated.cardinality,
      separateVectors
    )
  }

  /** Reads the stored bitmaps together, since they are stored in the same files. */
  private def reader(
      store: DeletionVectorStore,
      touched: Seq[FileWithDeletedRows]
  ): (String, Bitmap) => DeletionVector = {
    val stored = touched.flatMap { file =>
      (file.before.map(Bitmap.Stored(_)) ++ file.deleted ++ file.updated)
        .collect { case Bitmap.Stored(descriptor) => file.path -> descriptor }
    }
    val keys = stored.map { case (path, descriptor) => path -> descriptor.uniqueId }
    val read = keys.zip(store.readAll(new Path(spec.tablePath), stored)).toMap
    (path, bitmap) =>
      bitmap match {
        case inline: Bitmap.Inline => inline.vector
        case Bitmap.Stored(descriptor) => read(path -> descriptor.uniqueId).get
      }
  }

  /** The row count in the Parquet footer, for files without statistics. */
  private def rowsInFooter(file: String): Long = {
    val path = LogPath.toAbsolute(new Path(spec.tablePath), file)
    val reader = ParquetFiles.open(path, spec.hadoopConf)
    try reader.getRecordCount
    finally reader.close()
  }
}
