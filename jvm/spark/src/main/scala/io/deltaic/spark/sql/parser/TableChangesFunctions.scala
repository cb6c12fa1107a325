package io.deltaic.spark.sql.parser

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ReplaceExpressions}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.catalog.{ChangeFeedOptions, TableLocation}
import io.deltaic.spark.schema.PartitionValues
import io.deltaic.spark.sql.analysis.{PathChanges, TableChanges}

/**
 * The table functions `table_changes('name', start[, end])` and
 * `table_changes_by_path('/path', start[, end])`. Both bounds are versions or timestamps, and inclusive.
 */
private[spark] object TableChangesFunctions {

  private val ByName = "table_changes"
  private val ByPath = "table_changes_by_path"

  def inject(extensions: SparkSessionExtensions): Unit = {
    add(extensions, ByName) { (name, options) =>
      val parts = SparkSession.active.sessionState.sqlParser.parseMultipartIdentifier(name)
      // A path is resolved here: Spark's rule for files would refuse it before it reaches the catalog.
      pathOf(parts).fold[LogicalPlan](TableChanges(UnresolvedRelation(parts), name, options))(
        PathChanges(_, options)
      )
    }
    add(extensions, ByPath)(PathChanges(_, _))
  }

  private def pathOf(name: Seq[String]): Option[String] = name match {
    case Seq(namespace, table) => TableLocation.pathOf(Identifier.of(Array(namespace), table))
    case _ => None
  }

  private def add(extensions: SparkSessionExtensions, function: String)(
      plan: (String, CaseInsensitiveStringMap) => LogicalPlan
  ): Unit = extensions.injectTableFunction(
    (
      FunctionIdentifier(function),
      new ExpressionInfo(getClass.getName.stripSuffix("$"), function),
      arguments => new Call(function, arguments).plan(plan)
    )
  )

  private final class Call(function: String, arguments: Seq[Expression]) {

    def plan(make: (String, CaseInsensitiveStringMap) => LogicalPlan): LogicalPlan =
      arguments match {
        case Seq(table, start) => make(text(table), options(start, None))
        case Seq(table, start, end) => make(text(table), options(start, Some(end)))
        case _ => throw invalid(
            s"${arguments.size} arguments",
            "it takes a table, the start of the range and, optionally, its end"
          )
      }

    private def options(start: Expression, end: Option[Expression]): CaseInsensitiveStringMap = {
      import ChangeFeedOptions._
      val ends = Seq(bound(start, StartingVersion, StartingTimestamp)) ++
        end.map(bound(_, EndingVersion, EndingTimestamp))
      new CaseInsensitiveStringMap((ends.toMap + (ReadChangeFeed -> "true")).asJava)
    }

    private def text(argument: Expression): String = value(argument) match {
      case (_: StringType, text) => text.toString
      case _ => throw invalid(argument.sql, "the table must be given as a string")
    }

    private def bound(
        argument: Expression,
        versionOption: String,
        timestampOption: String
    ): (String, String) = value(argument) match {
      case (ByteType | ShortType | IntegerType | LongType, version) =>
        versionOption -> version.toString
      case (_: StringType, text) => timestampOption -> text.toString
      case (TimestampType, micros) =>
        timestampOption -> PartitionValues.toLog(timestampOption, TimestampType, micros)
      case (other, _) => throw invalid(
          argument.sql,
          s"an end of the range is a version (a whole number) or a time (a timestamp or a string), not ${other.sql}"
        )
    }

    /** The argument's type and value, which must not depend on any row. */
    private def value(argument: Expression): (DataType, Any) = {
      if (!argument.foldable) throw invalid(argument.sql, "it must be a constant")
      // Some expressions can only be evaluated after these optimizer rules.
      val plain = ReplaceExpressions(Project(Seq(Alias(argument, "value")()), OneRowRelation()))
      val now = ComputeCurrentTime(plain)
      val evaluated = now.expressions.head.asInstanceOf[Alias].child.eval()
      if (evaluated == null) throw invalid(argument.sql, "it must not be null")
      (argument.dataType, evaluated)
    }

    private def invalid(argument: String, reason: String): DeltaicThrowable =
      DeltaicException(
        "DELTAIC_INVALID_FUNCTION_ARGUMENT",
        Map("function" -> function, "argument" -> argument, "reason" -> reason)
      )
  }
}
