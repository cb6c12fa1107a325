package io.deltaic.spark.commit

import com.fasterxml.jackson.databind.JsonNode

import io.deltaic.protocol._
import io.deltaic.spark.util.Json

/** Non-file actions as the bridge passes them: the body, without the action's name around it. */
private[spark] object ActionBody {

  def metadata(body: JsonNode): Metadata = read("metaData", body) match {
    case metadata: Metadata => metadata
    case other => unexpected(other)
  }

  def protocol(body: JsonNode): Protocol = read("protocol", body) match {
    case protocol: Protocol => protocol
    case other => unexpected(other)
  }

  def write(action: Action): JsonNode =
    Json.parse(ActionJson.write(action)).elements().next()

  private def read(name: String, body: JsonNode): Action =
    ActionJson
      .parse(Json.obj(name -> body).toString)
      .getOrElse(throw new IllegalArgumentException(s"not a $name action: $body"))

  private def unexpected(action: Action): Nothing =
    throw new IllegalArgumentException(s"unexpected action ${action.getClass.getSimpleName}")
}
