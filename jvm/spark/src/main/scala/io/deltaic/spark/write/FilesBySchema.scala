package io.deltaic.spark.write

import scala.util.Using

import org.apache.hadoop.fs.Path
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.util.ParquetFiles

/** Selects data files by the schema in their footers, which tasks read. */
private[spark] object FilesBySchema {

  /**
   * The paths, as in the log, of the files whose schema satisfies a condition.
   *
   * @param phase of the operation
   * @param condition is serialized for each task, which applies the result to its files
   */
  def matching(transaction: WriteTransaction, files: Seq[AddFile], phase: String)(
      condition: () => MessageType => Boolean
  ): Set[String] = {
    val spec = transaction.copySpec
    val slots = SessionInternals.leafParallelism(transaction.spark)
    val perTask = (files.size / (slots * TasksOfSlot)).max(1)
    val table = transaction.log.table.toString
    JobInternals.inExecutors(
      transaction.spark,
      transaction.jobs(phase),
      files.map(_.path).grouped(perTask).toSeq
    ) { paths =>
      val matches = condition()
      paths.iterator.filter { path =>
        val location = LogPath.toAbsolute(new Path(table), path)
        Using.resource(ParquetFiles.open(location, spec.hadoopConf)) { reader =>
          matches(reader.getFileMetaData.getSchema)
        }
      }
    }.toSet
  }

  private val TasksOfSlot = 4
}
