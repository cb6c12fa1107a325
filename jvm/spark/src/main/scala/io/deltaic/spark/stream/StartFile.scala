package io.deltaic.spark.stream

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import io.deltaic.protocol.ActionJson

/**
 * Where a stream begins, written down in the checkpoint of its query: Spark asks for it until the first batch is
 * done, by a query that is started again, too, and meanwhile the table goes on.
 *
 * @param directory the one in the checkpoint that is the source's own
 */
private[stream] final class StartFile(spark: SparkSession, directory: String) {
  private val file = new Path(directory, "deltaic-start")

  private lazy val files =
    CheckpointFileManager.create(file.getParent, spark.sessionState.newHadoopConf())

  /**
   * The offset that was written down for this start, or else this one, which is written down now.
   *
   * @param asked in which way the stream is to begin: if a query is given another one before it has read
   *   anything, that counts
   */
  def offsetFor(asked: StreamStart)(offset: => String): String = written
    .collect { case (start, known) if start == asked.toString => known }
    .getOrElse {
      val begins = offset
      write(asked.toString, begins)
      begins
    }

  /** None of a file that was cut off, too. */
  private def written: Option[(String, String)] = Option.when(files.exists(file)) {
    val in = files.open(file)
    try ActionJson.mapper.readTree(new String(in.readAllBytes(), UTF_8))
    catch { case _: JsonProcessingException => ActionJson.mapper.createObjectNode() }
    finally in.close()
  }.filter(found => found.has("asked") && found.has("offset"))
    .map(found => (found.get("asked").asText, found.get("offset").asText))

  private def write(asked: String, offset: String): Unit = {
    val text = ActionJson.mapper.createObjectNode().put("asked", asked).put("offset", offset)
    files.mkdirs(file.getParent)
    val out = files.createAtomic(file, true)
    try {
      out.write(text.toString.getBytes(UTF_8))
      out.close()
    } catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
  }
}
