package io.deltaic.spark.commit

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.maintenance.MaintenanceTask
import io.deltaic.spark.util.Json

/**
 * The maintenance that Python requests after a commit: `{"background": ..., "tasks": [{"task": ...}, ...]}`.
 *
 * @param tasks of the log
 * @param compactsFiles whether small data files are compacted where the commit has added some
 */
private[spark] final case class MaintenanceRequest(
    tasks: Seq[MaintenanceTask],
    inBackground: Boolean,
    compactsFiles: Boolean = false
)

private[spark] object MaintenanceRequest {

  def parse(json: String): MaintenanceRequest = of(Json.parse(json))

  private val AutoCompaction = "autoCompaction"

  def of(request: ObjectNode): MaintenanceRequest = {
    val (compactions, tasks) = request.get("tasks").elements.asScala.toVector
      .partition(_.path("task").asText == AutoCompaction)
    MaintenanceRequest(
      tasks.map(task),
      request.path("background").asBoolean(true),
      compactions.nonEmpty
    )
  }

  private def task(node: JsonNode): MaintenanceTask = node match {
    case json: ObjectNode =>
      def number(name: String): Long = json.required(name).longValue
      json.required("task").asText match {
        case "checksum" => MaintenanceTask.Checksum
        case "classicCheckpoint" =>
          MaintenanceTask.ClassicCheckpoint(Option(json.get("partSize")).map(_.intValue))
        case "v2Checkpoint" =>
          MaintenanceTask.V2Checkpoint(
            Math.toIntExact(number("sidecarSize")),
            json.required("alsoClassic").booleanValue
          )
        case "compaction" => MaintenanceTask.Compaction(number("first"), number("last"))
        case "symlinkManifest" => MaintenanceTask.SymlinkManifest
        case "cleanup" =>
          MaintenanceTask.Cleanup(number("retentionMs"), json.path("protectedVersion").asLong(0))
        case other => throw new IllegalArgumentException(s"there is no task $other")
      }
    case other => throw new IllegalArgumentException(s"no task: $other")
  }
}
