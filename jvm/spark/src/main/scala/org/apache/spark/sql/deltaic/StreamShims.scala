package org.apache.spark.sql.deltaic

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** What sources of streams keep in a query's checkpoint. */
object StreamShims {

  private val FileName = "deltaic-start"
  private val Version = "v1\n"

  /**
   * A text that stays what it was when it was first asked for.
   *
   * @param checkpoint the directory that is the source's own
   */
  def onlyOnce(spark: SparkSession, checkpoint: String)(text: => String): String = {
    val directory = new Path(checkpoint)
    val file = new Path(directory, FileName)
    val manager =
      CheckpointFileManager.create(directory, spark.sessionState.newHadoopConf())
    def written: String = {
      val in = manager.open(file)
      try new String(in.readAllBytes(), UTF_8).stripPrefix(Version)
      finally in.close()
    }
    if (manager.exists(file)) written
    else {
      manager.mkdirs(directory)
      val first = text
      try {
        val out = manager.createAtomic(file, false)
        try {
          out.write((Version + first).getBytes(UTF_8))
          out.close()
        } catch {
          case e: Throwable =>
            out.cancel()
            throw e
        }
        first
      } catch { case _: FileAlreadyExistsException => written }
    }
  }
}
