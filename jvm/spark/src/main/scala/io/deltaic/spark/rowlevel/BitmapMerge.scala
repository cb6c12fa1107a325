package io.deltaic.spark.rowlevel

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.deltaic.WriteShims

import io.deltaic.dv.{DeletionVector, DeletionVectorFileWriter, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.bridge.FileChanges
import io.deltaic.spark.write.DataWriteSpec

/**
 * A file some of whose rows end.
 *
 * @param numRecords rows in the data file, if the log says
 * @param before the rows that ended before
 */
private[rowlevel] final case class TouchedFile(
    path: String,
    sizeBytes: Long,
    numRecords: Option[Long],
    before: Option[DeletionVectorDescriptor],
    deleted: Seq[Bitmap],
    updated: Seq[Bitmap]
) {

  /** What is in memory when these are merged. */
  def bitmapBytes: Long =
    before.fold(0L)(_.sizeBytes.toLong) + deleted.map(_.sizeBytes).sum + updated.map(
      _.sizeBytes
    ).sum

  def isCarried: Boolean = (deleted ++ updated).forall(_.isInstanceOf[Bitmap.Carried])
}

private[rowlevel] object TouchedFile {

  /** @param filesRead by path */
  def of(
      filesRead: Map[String, AddFile],
      deleted: Seq[FoundRows],
      updated: Seq[FoundRows]
  ): Seq[TouchedFile] = {
    val gone = deleted.groupMap(_.file)(_.rows)
    val replaced = updated.groupMap(_.file)(_.rows)
    (gone.keySet ++ replaced.keySet).toSeq.sorted.map { path =>
      val file = filesRead(path)
      TouchedFile(
        path,
        file.sizeBytes,
        FileChanges.rows(file),
        file.deletionVector,
        gone.getOrElse(path, Nil),
        replaced.getOrElse(path, Nil)
      )
    }
  }

  /** Files one after the other, as many at a time as have so many bytes of bitmaps, at least one. */
  def groups(touched: Seq[TouchedFile], bytes: Long): Seq[Seq[TouchedFile]] = {
    val groups = ArrayBuffer.empty[ArrayBuffer[TouchedFile]]
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
 * What becomes of a file.
 *
 * @param fate and the vector of all rows that have ended, now or before
 * @param numRecords rows in the data file
 * @param deleted how many rows are gone, and `updated` how many have changed
 * @param apart the vectors of the rows that are gone and of those that have changed, where there are both
 *   and somebody wants to know
 */
private[rowlevel] final case class MergedFile(
    path: String,
    fate: MergedFile.Fate,
    numRecords: Long,
    deleted: Long,
    updated: Long,
    apart: Option[(DeletionVectorDescriptor, DeletionVectorDescriptor)]
) {

  def keptUnder: Option[DeletionVectorDescriptor] = fate match {
    case MergedFile.Kept(vector) => Some(vector)
    case _ => None
  }

  def rewrittenBy: Option[DeletionVectorDescriptor] = fate match {
    case MergedFile.Rewritten(vector) => Some(vector)
    case _ => None
  }
}

private[rowlevel] object MergedFile {
  sealed trait Fate

  /** No row is left. */
  case object Ended extends Fate

  /** So few rows are left, or the table is such, that the file is rewritten without the others. */
  final case class Rewritten(vector: DeletionVectorDescriptor) extends Fate

  final case class Kept(vector: DeletionVectorDescriptor) extends Fate
}

/**
 * @param vectorFiles files with the vectors of the files that are kept
 * @param temporaryFiles files with other vectors, of no use once the commit is made
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
 * Makes one bitmap for each file of those that tasks have found and of the file's old deletion vector,
 * and the vectors that these become. On the driver or in a task.
 *
 * @param keepsVectors whether files that keep rows get vectors
 * @param tellsApart whether rows that are gone and rows that have changed must be told from each other
 * @param carries whether vectors that only this statement needs stay in memory
 * @param maxInlineBytes up to which size a vector goes into the log, even if it is more than a handful of rows
 */
private[rowlevel] final case class BitmapMerge(
    spec: DataWriteSpec,
    settings: VectorSettings,
    keepsVectors: Boolean,
    tellsApart: Boolean,
    carries: Boolean,
    maxInlineBytes: Long
) {

  /** @param onStart is handed what deletes all files that have been written, should they not be needed */
  def apply(touched: Seq[TouchedFile], onStart: (() => Unit) => Unit): MergedFiles = {
    val store = new DeletionVectorStore(spec.hadoopConf)
    val vectors = spec.newVectorFile(store, settings.maxFileBytes)
    val temporary = spec.newVectorFile(store, settings.maxFileBytes)
    def abort(): Unit =
      try vectors.abort()
      finally temporary.abort()
    onStart(() => abort())
    try {
      val read = reader(store, touched)
      val files = touched.map(merged(_, read, vectors, aside(store, temporary)))
      vectors.close()
      temporary.close()
      MergedFiles(files, vectors.files.map(_.toString), temporary.files.map(_.toString))
    } catch {
      case e: Throwable =>
        abort()
        throw e
    }
  }

  private def aside(
      store: DeletionVectorStore,
      temporary: DeletionVectorFileWriter
  ): DeletionVector => DeletionVectorDescriptor =
    if (carries) store.inline else vector => temporary.place(vector)

  private def merged(
      touched: TouchedFile,
      read: (String, Bitmap) => DeletionVector,
      vectors: DeletionVectorFileWriter,
      aside: DeletionVector => DeletionVectorDescriptor
  ): MergedFile = {

    /** Their rows, and how many these are where those that several have count several times. */
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
    val ended = new DeletionVector
    ended.or(deleted)
    ended.or(updated)
    // Spark looks for rows with two matches in each task, but a skewed source is split over several.
    if (ended.cardinality < deleted.cardinality + numUpdates) throw WriteShims.matchedTwice
    touched.before.foreach(vector => ended.or(read(touched.path, Bitmap.Stored(vector))))
    val numRecords = touched.numRecords.getOrElse(
      PhysicalRows.fromFooter(new Path(spec.tablePath), touched.path, spec.hadoopConf)
    )
    val fate =
      if (ended.cardinality >= numRecords) MergedFile.Ended
      else if (!keepsVectors || settings.isWorn(touched.sizeBytes, numRecords, ended.cardinality))
        MergedFile.Rewritten(aside(ended))
      else MergedFile.Kept(vectors.place(ended, maxInlineBytes))
    val areBoth = !deleted.isEmpty && !updated.isEmpty
    val apart = Option.when(tellsApart && areBoth)((aside(deleted), aside(updated)))
    MergedFile(
      touched.path,
      fate,
      numRecords,
      deleted.cardinality,
      updated.cardinality,
      apart
    )
  }

  /** Those in files are read together: they lie together. */
  private def reader(
      store: DeletionVectorStore,
      touched: Seq[TouchedFile]
  ): (String, Bitmap) => DeletionVector = {
    val stored = touched.flatMap { file =>
      (file.before.map(Bitmap.Stored(_)) ++ file.deleted ++ file.updated)
        .collect { case Bitmap.Stored(descriptor) => file.path -> descriptor }
    }
    val keys = stored.map { case (path, descriptor) => path -> descriptor.uniqueId }
    val read = keys.zip(store.readAll(new Path(spec.tablePath), stored)).toMap
    (path, bitmap) =>
      bitmap match {
        case carried: Bitmap.Carried => carried.vector
        case Bitmap.Stored(descriptor) => read(path -> descriptor.uniqueId).get
      }
  }
}
