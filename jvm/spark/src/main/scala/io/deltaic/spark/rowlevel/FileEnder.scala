package io.deltaic.spark.rowlevel

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.deltaic.WriteShims

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile, TableFeatures}
import io.deltaic.spark.bridge.{FileChanges, WideStatistics}
import io.deltaic.spark.write.{DataWriteSpec, EndedFiles, WriteTransaction}

/**
 * Turns ended rows into file actions.
 *
 *   - A file all of whose rows have ended is removed.
 *   - On a table with deletion vectors, a file that keeps rows gets a new vector: the old one's rows
 *     and the newly ended ones.
 *   - On any other table the same vector is built, and the file is rewritten through it at once. So
 *     there is one path for changes, and copy-on-write is its last step.
 */
private[rowlevel] final class FileEnder(change: RowLevelChange, transaction: WriteTransaction) {

  import FileEnder.Touched

  private val table = change.log.table
  private val configuration: Configuration =
    WriteShims.hadoopConf(change.spark, Map.empty)
  val vectors = new DeletionVectorStore(configuration)

  /** @param ended rows that end now, by the path of their file */
  def apply(ended: Map[String, DeletionVector]): EndedFiles = {
    val deletionTimestampMs = System.currentTimeMillis()
    val touched = ended.toSeq.sortBy(_._1).map { case (path, rows) =>
      val file = change.filesRead(path)
      file.deletionVector.foreach(old => rows.or(vectors.read(table, path, old)))
      Touched(file, rows)
    }
    val survivors = touched.filter(t => t.ended.cardinality < physicalRows(t.file))
    val removes = touched.map(_.file.remove(deletionTimestampMs))
    if (writesDeletionVectors) withNewVectors(removes, survivors)
    else rewritten(removes, survivors)
  }

  private def writesDeletionVectors: Boolean =
    TableFeatures.supports(transaction.plan.protocol, "deletionVectors") &&
    transaction.plan.metadata.configuration
      .get("delta.enableDeletionVectors")
      .exists(_.equalsIgnoreCase("true"))

  private def withNewVectors(removes: Seq[RemoveFile], survivors: Seq[Touched]): EndedFiles = {
    val prefixLength = DataWriteSpec.randomPrefixLength(transaction.plan.metadata.configuration)
    val file =
      vectors.newWriter(table, prefixLength.getOrElse(0)) // there is none before the first vector
    try {
      val adds = survivors.map { survivor =>
        withVector(survivor.file, file.place(survivor.ended))
      }
      file.close()
      EndedFiles(removes, adds, Nil, file.files, copiedRows = 0L)
    } catch {
      case e: Throwable =>
        file.abort()
        throw e
    }
  }

  private def rewritten(removes: Seq[RemoveFile], survivors: Seq[Touched]): EndedFiles = {
    val sources = survivors.map(s => withVector(s.file, vectors.inline(s.ended)))
    val adds = new FileRewriter(change.spark, transaction, change.snapshot).rewrite(sources)
    EndedFiles(removes, adds, adds, Nil, copiedRows = adds.flatMap(FileChanges.rows).sum)
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
