package io.deltaic.spark.bridge

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.upkeep.UpkeepTask

/** What Python says is due after a commit: `{"background": ..., "tasks": [{"task": ...}, ...]}`. */
private[spark] final case class UpkeepRequest(tasks: Seq[UpkeepTask], inBackground: Boolean)

private[spark] object UpkeepRequest {

  def parse(json: String): UpkeepRequest = {
    val request = Json.parse(json)
    UpkeepRequest(
      request.get("tasks").elements.asScala.map(task).toVector,
      request.path("background").asBoolean(true)
    )
  }

  private def task(node: JsonNode): UpkeepTask = node match {
    case json: ObjectNode =>
      def number(name: String): Long = json.required(name).longValue
      json.required("task").asText match {
        case "checksum" => UpkeepTask.Checksum
        case "classicCheckpoint" =>
          UpkeepTask.ClassicCheckpoint(Option(json.get("partSize")).map(_.intValue))
        case "v2Checkpoint" =>
          UpkeepTask.V2Checkpoint(
            Math.toIntExact(number("sidecarSize")),
            json.required("alsoClassic").booleanValue
          )
        case "compaction" => UpkeepTask.Compaction(number("first"), number("last"))
        case "symlinkManifest" => UpkeepTask.SymlinkManifest
        case "cleanup" =>
          UpkeepTask.Cleanup(number("retentionMs"), json.path("protectedVersion").asLong(0))
        case other => throw new IllegalArgumentException(s"there is no task $other")
      }
    case other => throw new IllegalArgumentException(s"no task: $other")
  }
}
