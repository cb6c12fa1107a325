package io.deltaic.protocol

import java.util.ServiceLoader

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._
import scala.util.matching.Regex

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * Every failure that this engine reports: a condition of `error-conditions.json` with its parameters. The
 * message is in that file, which Python reads too, so that both languages say the same. The file also names
 * the class of Spark that the failure has where Spark is on the class path, its SQLSTATE and its class in
 * Python (docs/decisions/0042-errors-are-of-sparks-classes.md).
 *
 * Catch this trait. Throw what [[DeltaicException.apply]] returns.
 */
trait DeltaicThrowable extends Throwable {

  /** A key of `error-conditions.json`, such as `DELTAIC_LOG_GAP`. */
  def condition: String

  /** A value for each `<name>` in the condition's message. */
  def parameters: Map[String, String]

  def getCondition: String

  /** The parameters as one JSON object, for Python. */
  def getParametersJson: String = {
    val json = ErrorConditions.mapper.createObjectNode()
    parameters.foreach { case (name, value) => json.put(name, value) }
    json.toString
  }
}

/** A failure in a process without Spark. */
class DeltaicException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends RuntimeException(ErrorConditions.render(condition, parameters), cause)
    with DeltaicThrowable {

  override def getCondition: String = condition
}

object DeltaicException {

  /**
   * The failure of a condition, of the class that the condition names.
   *
   * @param condition a key of `error-conditions.json`
   * @param parameters a value for each `<name>` in the condition's message
   */
  def apply(
      condition: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): DeltaicThrowable = {
    val shown = Printable.cause(cause)
    factory match {
      case Some(classes) => classes.create(condition, parameters, shown)
      case None => new DeltaicException(condition, parameters, shown)
    }
  }

  /** The module that knows Spark brings one. */
  private lazy val factory: Option[ExceptionFactory] = {
    val service = classOf[ExceptionFactory]
    ServiceLoader.load(service, service.getClassLoader).findFirst.toScala
  }
}

/** Makes the failures of conditions where there are better classes for them than [[DeltaicException]]. */
trait ExceptionFactory {
  def create(condition: String, parameters: Map[String, String], cause: Throwable): DeltaicThrowable
}

/**
 * @param message with a `<name>` for each parameter
 * @param sparkClass the simple name of the class of Spark, or of Java, that Spark's users catch
 */
private[deltaic] final case class ErrorCondition(
    message: String,
    sparkClass: String,
    sqlState: String
)

/** The content of `error-conditions.json`. */
private[deltaic] object ErrorConditions {

  private[protocol] val mapper: ObjectMapper = new ObjectMapper()
  private val parameter = "<([A-Za-z][A-Za-z0-9]*)>".r

  /** SQLSTATE of an internal error, for a condition that is unknown. */
  private val internalError = "XXKDS"

  private lazy val conditions: Map[String, ErrorCondition] = SharedResource
    .json("error-conditions.json")
    .properties
    .asScala
    .map { entry =>
      val body = entry.getValue
      entry.getKey -> ErrorCondition(
        body.get("message").elements.asScala.map(_.asText).mkString("\n"),
        body.path("sparkClass").asText("SparkRuntimeException"),
        body.path("sqlState").asText(internalError)
      )
    }
    .toMap

  def names: Set[String] = conditions.keySet

  /** An unknown condition has no message. */
  def of(condition: String): ErrorCondition =
    conditions.getOrElse(condition, ErrorCondition("", "SparkRuntimeException", internalError))

  /** The parameters that the message of a condition mentions. */
  def parametersOf(condition: String): Set[String] =
    parameter.findAllMatchIn(of(condition).message).map(_.group(1)).toSet

  /** Renders even what is wrong about the error itself: a bug in reporting must not hide the report. */
  def render(condition: String, parameters: Map[String, String]): String = {
    val known = of(condition)
    val text =
      if (known.message.isEmpty) parameters.map { case (n, value) => s"$n: $value" }.mkString(", ")
      else
        parameter.replaceAllIn(
          known.message,
          m =>
            Regex.quoteReplacement(parameters.get(m.group(1)).fold(m.matched)(Printable(_)))
        )
    s"[$condition] $text SQLSTATE: ${known.sqlState}"
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
