package io.deltaic.spark.stream

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import io.deltaic.protocol.ActionJson

/**
 * Records the initial offset of a stream in the checkpoint of its query. Until the first batch is
 * done, Spark may request it again, also after a restart of the query, while the table gets new
 * commits.
 *
 * @param directory the source's directory in the checkpoint
 */
private[stream] final class StartFile(spark: SparkSession, directory: String) {
  private val file = new Path(directory, "deltaic-start")

  private lazy val files =
    CheckpointFileManager.create(file.getParent, spark.sessionState.newHadoopConf())

  /**
   * The offset that was recorded for this start, or else this one, which is recorded now.
   *
   * @param requested how the stream starts: if a query is restarted with another start before it has
   *   read anything, that one applies
   */
  def offsetFor(requested: StreamStart)(offset: => String): String = written
    .collect { case (start, stored) if start == requested.toString => stored }
    .getOrElse {
      val begins = offset
      write(requested.toString, begins)
      begins
    }

  /** None also for a truncated file. */
  private def written: Option[(String, String)] = Option.when(files.exists(file)) {
    val in = files.open(file)
    try ActionJson.mapper.readTree(new String(in.readAllBytes(), UTF_8))
    catch { case _: JsonProcessingException => ActionJson.mapper.createObjectNode() }
    finally in.close()
  }.filter(found => found.has("asked") && found.has("offset"))
    .map(found => (found.get("asked").asText, found.get("offset").asText))

  private def write(requested: String, offset: String): Unit = {
    val json = ActionJson.mapper.createObjectNode().put("asked", requested).put("offset", offset)
    files.mkdirs(file.getParent)
    val out = files.createAtomic(file, true)
    try {
      out.write(json.toString.getBytes(UTF_8))
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }
}
