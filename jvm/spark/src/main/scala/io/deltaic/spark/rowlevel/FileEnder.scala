package io.deltaic.spark.rowlevel

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.deltaic.WriteShims

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, TableFeatures}
import io.deltaic.spark.bridge.{FileChanges, WideStatistics}
import io.deltaic.spark.write.{DataWriteSpec, EndedFiles, NewFiles, WriteTransaction}

/**
 * Turns ended rows into file actions.
 *
 *   - A file all of whose rows have ended is removed.
 *   - On a table with deletion vectors, a file that keeps rows gets a new vector: the old one's rows
 *     and the newly ended ones.
 *     A file that keeps few of its rows is rewritten, so that vectors do not stay for ever.
 *   - On any other table the same vector is built, and the file is rewritten through it at once. So
 *     there is one path for changes, and copy-on-write is its last step.
 */
private[rowlevel] final class FileEnder(change: RowLevelChange, transaction: WriteTransaction) {

  import FileEnder.Touched

  private val table = change.log.table
  private val configuration: Configuration =
    WriteShims.hadoopConf(change.spark, Map.empty)
  val vectors = new DeletionVectorStore(configuration)

  private lazy val settings =
    VectorSettings.of(change.spark, transaction.plan.metadata.configuration)

  /**
   * @param ended rows that end now, by the path of their file
   * @param whole other files, of which all rows end
   */
  def apply(ended: Map[String, DeletionVector], whole: Seq[AddFile]): EndedFiles = {
    val deletionTimestampMs = System.currentTimeMillis()
    val touched = withOldVectors(ended.toSeq.sortBy(_._1).map { case (path, rows) =>
      Touched(change.filesRead(path), rows.copy())
    })
    val survivors = touched.filter(t => t.ended.cardinality < physicalRows(t.file))
    val (worn, kept) = survivors.partition(t => !writesDeletionVectors || isWorn(t))
    val copies = rewritten(worn)
    try {
      val (adds, vectorFiles) = withNewVectors(kept)
      val removes = (whole ++ touched.map(_.file)).map(_.remove(deletionTimestampMs))
      val copiedRows = copies.flatMap(FileChanges.rows).sum
      EndedFiles(removes, adds ++ copies, copies, vectorFiles, copiedRows)
    } catch {
      case e: Throwable =>
        transaction.abort(NewFiles(copies), tasksLost = false)
        throw e
    }
  }

  /** With the rows that ended before. */
  private def withOldVectors(touched: Seq[Touched]): Seq[Touched] = {
    val old = touched.flatMap(t => t.file.deletionVector.map(t -> _))
    vectors.readAll(table, old.map { case (t, vector) => t.file.path -> vector }).zip(old)
      .foreach { case (before, (t, _)) => t.ended.or(before.get) }
    touched
  }

  private def isWorn(t: Touched): Boolean =
    settings.isWorn(t.file.sizeBytes, physicalRows(t.file), t.ended.cardinality)

  private lazy val writesDeletionVectors: Boolean =
    TableFeatures.isActive(
      transaction.plan.protocol,
      transaction.plan.metadata,
      "deletionVectors"
    )

  /** @return the files under their new vectors, and those that vectors were written to */
  private def withNewVectors(survivors: Seq[Touched]): (Seq[AddFile], Seq[Path]) = {
    val prefixLength = DataWriteSpec.randomPrefixLength(transaction.plan.metadata.configuration)
    val file = // there is none before the first vector
      vectors.newWriter(table, prefixLength.getOrElse(0), settings.maxFileBytes)
    try {
      val adds = survivors.map { survivor =>
        withVector(survivor.file, file.place(survivor.ended))
      }
      file.close()
      (adds, file.files)
    } catch {
      case e: Throwable =>
        file.abort()
        throw e
    }
  }

  private def rewritten(survivors: Seq[Touched]): Seq[AddFile] = {
    val sources = survivors.map(s => withVector(s.file, vectors.inline(s.ended)))
    new FileRewriter(change.spark, transaction, change.snapshot).rewrite(sources)
  }

  /** The same data file under another vector. Its statistics now bound more rows than are left. */
  private def withVector(file: AddFile, vector: DeletionVectorDescriptor): AddFile = file.copy(
    deletionVector = Some(vector),
    dataChange = true,
    stats = Some(WideStatistics.of(file.stats, physicalRows(file)))
  )

  private def physicalRows(file: AddFile): Long =
    FileChanges.rows(file).getOrElse(PhysicalRows.fromFooter(table, file, configuration))
}

private object FileEnder {

  /** A file, and all its rows that have ended, now or before. */
  final case class Touched(file: AddFile, ended: DeletionVector)
}
