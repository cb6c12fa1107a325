package io.deltaic.spark.errors

import java.util.{ConcurrentModificationException, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.deltaic.{ErrorListInternals, RuntimeExceptionInternals}
import org.apache.spark.{BreakingChangeInfo, QueryContext, SparkThrowable}

import io.deltaic.protocol.{DeltaicThrowable, ErrorConditions, ExceptionFactory, Printable}

/** Errors as Spark throwables. Everything that Spark would look up in its own list of conditions is overridden. */
trait DeltaicSparkThrowable extends DeltaicThrowable with SparkThrowable {

  override def getCondition: String = condition

  override def getErrorClass: String = condition

  override def getSqlState: String = ErrorConditions.of(condition).sqlState

  /** As rendered in the message. */
  override def getMessageParameters: JMap[String, String] =
    parameters.transform((_, value) => Printable(value)).asJava

  override def getDefaultMessageTemplate: String = ErrorConditions.of(condition).message

  override def isInternalError: Boolean = DeltaicSparkThrowable.OfDefects(condition)

  override def getBreakingChangeInfo: BreakingChangeInfo = null

  override def getQueryContext: Array[QueryContext] = Array.empty
}

private object DeltaicSparkThrowable {

  /** Conditions of defects of Deltaic. */
  val OfDefects: Set[String] = Set("DELTAIC_INTERNAL_ERROR", "DELTAIC_INVALID_BRIDGE_MESSAGE")
}

/** An error at analysis, before anything runs: names, columns, types, definitions, versions. */
class DeltaicAnalysisException(
    val condition: String,
    val parameters: Map[String, String],
    throwable: Throwable = null,
    override val line: Option[Int] = None,
    override val startPosition: Option[Int] = None
) extends AnalysisException(
      ErrorConditions.render(condition, parameters),
      line,
      startPosition,
      Option(throwable),
      Some(condition),
      parameters,
      Array.empty[QueryContext]
    ) with DeltaicSparkThrowable {

  /** Spark's implementation would return an exception that is not Deltaic's. */
  override def withPosition(origin: Origin): AnalysisException = {
    val placed = new DeltaicAnalysisException(
      condition,
      parameters,
      throwable,
      origin.line,
      origin.startPosition
    )
    placed.setStackTrace(getStackTrace)
    placed
  }
}

/** An option, setting or argument has an invalid value. */
class DeltaicIllegalArgumentException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends IllegalArgumentException(ErrorConditions.render(condition, parameters), cause)
    with DeltaicSparkThrowable

/** The table, or this version of Deltaic, does not support the operation. */
class DeltaicUnsupportedOperationException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends UnsupportedOperationException(ErrorConditions.render(condition, parameters), cause)
    with DeltaicSparkThrowable

/** A value is out of range. */
class DeltaicArithmeticException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends ArithmeticException(ErrorConditions.render(condition, parameters))
    with DeltaicSparkThrowable {
  if (cause != null) initCause(cause)
}

/** Another commit was made concurrently. */
class DeltaicConcurrentModificationException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends ConcurrentModificationException(ErrorConditions.render(condition, parameters), cause)
    with DeltaicSparkThrowable

/** An error at run time: damaged files, rows that violate a constraint, storage that fails. */
class DeltaicRuntimeException(
    val condition: String,
    val parameters: Map[String, String],
    cause: Throwable = null
) extends RuntimeExceptionInternals(cause) with DeltaicSparkThrowable {

  override def getMessage: String = ErrorConditions.render(condition, parameters)
}

/** Named in `META-INF/services`. */
class SparkExceptionFactory extends ExceptionFactory {
  ErrorListInternals.add(ErrorConditions.names.iterator.map { name =>
    val condition = ErrorConditions.of(name)
    name -> (condition.message -> condition.sqlState)
  }.toMap)

  override def create(
      condition: String,
      parameters: Map[String, String],
      cause: Throwable
  ): DeltaicThrowable = ErrorConditions.of(condition).sparkClass match {
    case "AnalysisException" => new DeltaicAnalysisException(condition, parameters, cause)
    case "IllegalArgumentException" =>
      new DeltaicIllegalArgumentException(condition, parameters, cause)
    case "UnsupportedOperationException" =>
      new DeltaicUnsupportedOperationException(condition, parameters, cause)
    case "ArithmeticException" => new DeltaicArithmeticException(condition, parameters, cause)
    case "ConcurrentModificationException" =>
      ConflictClasses.create(condition, parameters, cause)
    case _ => new DeltaicRuntimeException(condition, parameters, cause)
  }
}
