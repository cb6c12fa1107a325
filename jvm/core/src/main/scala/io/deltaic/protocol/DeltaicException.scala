package io.deltaic.protocol

import java.util.ServiceLoader

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._
import scala.util.matching.Regex

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * Every error that this engine reports: a condition of `error-conditions.json` with its parameters. The message is in
 * that file, which Python reads too, so that both languages report the same. The file also names the Spark class of the
 * error, which is used if Spark is on the class path, its SQLSTATE and its class in Python
 * (docs/decisions/0042-errors-are-instances-of-sparks-classes.md).
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

/** An error in a process without Spark. */
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
   * The error for a condition, of the class that the condition specifies.
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

  /** The Spark module provides one. */
  private lazy val factory: Option[ExceptionFactory] = {
    val service = classOf[ExceptionFactory]
    ServiceLoader.load(service, service.getClassLoader).findFirst.toScala
  }
}

/** Creates the errors of conditions where better classes than [[DeltaicException]] are available. */
trait ExceptionFactory {
  def create(condition: String, parameters: Map[String, String], cause: Throwable): DeltaicThrowable
}

/**
 * @param message with a `<name>` for each parameter
 * @param sparkClass the simple name of the Spark or Java class that Spark users catch
 * @param pythonClass the simple name of the class of its exception in Python, which is delta-spark's where it has one
 */
private[deltaic] final case class ErrorCondition(
    message: String,
    sparkClass: String,
    sqlState: String,
    pythonClass: String
)

/** The content of `error-conditions.json`. */
private[deltaic] object ErrorConditions {

  private[protocol] val mapper: ObjectMapper = new ObjectMapper()
  private val parameter = "<([A-Za-z][A-Za-z0-9]*)>".r

  /** SQLSTATE of an internal error, for an unknown condition. */
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
        body.path("sqlState").asText(internalError),
        body.path("pythonClass").asText("DeltaError")
      )
    }
    .toMap

  def names: Set[String] = conditions.keySet

  private val Unknown = ErrorCondition("", "SparkRuntimeException", internalError, "DeltaError")

  /** An unknown condition has no message. */
  def of(condition: String): ErrorCondition =
    conditions.getOrElse(condition, Unknown)

  /** The parameters in the message of a condition. */
  def parametersOf(condition: String): Set[String] =
    parameter.findAllMatchIn(of(condition).message).map(_.group(1)).toSet

  /** Never fails, even if the error itself is incomplete: a bug in reporting must not hide the original error. */
  def render(condition: String, parameters: Map[String, String]): String = {
    val definition = of(condition)
    val message =
      if (definition.message.isEmpty) parameters.map { case (n, v) => s"$n: $v" }.mkString(", ")
      else
        parameter.replaceAllIn(
          definition.message,
          m =>
            Regex.quoteReplacement(parameters.get(m.group(1)).fold(m.matched)(Printable(_)))
        )
    s"[$condition] $message SQLSTATE: ${definition.sqlState}"
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
