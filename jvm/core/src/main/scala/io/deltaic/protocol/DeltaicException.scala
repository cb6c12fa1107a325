package io.deltaic.protocol

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * Every failure that this engine reports, as a condition of `error-conditions.json` with its parameters. The text lives
 * in that file, which Python reads too, so that both languages say the same and Python can pick its own class.
 *
 * @param condition a key of `error-conditions.json`, such as `DELTAIC_LOG_GAP`
 * @param parameters a value for each `<name>` in the condition's message
 */
class DeltaicException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends RuntimeException(ErrorConditions.render(condition, parameters), cause) {

  def getCondition: String = condition

  /** The parameters as one JSON object, for Python. */
  def getParametersJson: String = {
    val json = ErrorConditions.mapper.createObjectNode()
    parameters.foreach { case (name, value) => json.put(name, value) }
    json.toString
  }
}

/** The messages of `error-conditions.json`. */
private[deltaic] object ErrorConditions {

  private[protocol] val mapper: ObjectMapper = new ObjectMapper()
  private val parameter = "<([A-Za-z][A-Za-z0-9]*)>".r

  private lazy val messages: Map[String, String] = SharedResource
    .json("error-conditions.json")
    .properties
    .asScala
    .map(e => e.getKey -> e.getValue.get("message").elements.asScala.map(_.asText).mkString("\n"))
    .toMap

  def names: Set[String] = messages.keySet

  /** The parameters that the message of a condition mentions. */
  def parametersOf(condition: String): Set[String] =
    messages.get(condition).toSet.flatMap((m: String) =>
      parameter.findAllMatchIn(m).map(_.group(1))
    )

  /** Renders even what is wrong about the error itself: a bug in reporting must not hide the report. */
  def render(condition: String, parameters: Map[String, String]): String = {
    val text = messages.get(condition) match {
      case Some(message) =>
        parameter.replaceAllIn(
          message,
          m =>
            scala.util.matching.Regex
              .quoteReplacement(parameters.getOrElse(m.group(1), m.matched))
        )
      case None => parameters.map { case (name, value) => s"$name: $value" }.mkString(", ")
    }
    s"[$condition] $text"
  }
}

/** A JSON file of the Python package, which the build copies into the jar. */
private[deltaic] object SharedResource {

  def json(name: String): JsonNode = {
    val in = getClass.getResourceAsStream(s"/io/deltaic/$name")
    if (in == null) {
      throw new IllegalStateException(s"/io/deltaic/$name is missing from the Deltaic jar")
    }
    try new ObjectMapper().readTree(in)
    finally in.close()
  }
}
