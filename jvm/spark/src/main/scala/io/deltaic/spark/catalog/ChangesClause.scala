package io.deltaic.spark.catalog

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import org.apache.spark.sql.connector.catalog.ChangelogContext.DeduplicationMode
import org.apache.spark.sql.connector.catalog.ChangelogRange.{TimestampRange, VersionRange}
import org.apache.spark.sql.connector.catalog.{Changelog, ChangelogContext, ChangelogRange}
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.errors.{DeltaicAnalysisException, DeltaicUnsupportedOperationException}
import io.deltaic.spark.schema.PartitionValues

/** Spark's CHANGES clause: `SELECT * FROM t CHANGES FROM VERSION 1 TO VERSION 3`. */
private[spark] object ChangesClause {
  import ChangeFeedOptions._

  /**
   * Spark interprets every [[UnsupportedOperationException]] of a catalog as no support for changes, and
   * drops its message. Ours describe an error of the table, so they are rethrown as another class.
   */
  def asAnalysisException(error: DeltaicUnsupportedOperationException): DeltaicAnalysisException =
    new DeltaicAnalysisException(error.condition, error.parameters, error)

  /** The changes in the range of the clause; Spark applies its other options. */
  def changelog(table: DeltaicTable, context: ChangelogContext): Changelog = {
    val range = bounds(table.log, context)
    val options = new CaseInsensitiveStringMap((range + (ReadChangeFeed -> "true")).asJava)
    table.changes(
      options,
      mayBeEmpty = excludesEnd(context.range),
      identifiesRows = context.deduplicationMode == DeduplicationMode.NET_CHANGES
    )
  }

  /** A range with an exclusive bound may be empty without being an error. */
  private def excludesEnd(range: ChangelogRange): Boolean = range match {
    case r: VersionRange => excludesEnd(r, r.endingVersion.isPresent)
    case r: TimestampRange => excludesEnd(r, r.endingTimestamp.isPresent)
    case _ => false
  }

  private def excludesEnd(range: ChangelogRange, hasEnd: Boolean): Boolean =
    !range.startingBoundInclusive || (hasEnd && !range.endingBoundInclusive)

  private def bounds(log: DeltaLog, context: ChangelogContext): Map[String, String] =
    context.range match {
      case range: VersionRange =>
        val first = TimeTravel.parseVersion(log, range.startingVersion)
        val last = range.endingVersion.toScala.map(TimeTravel.parseVersion(log, _))
        Map(StartingVersion -> (first + after(range.startingBoundInclusive)).toString) ++
          last.map(v => EndingVersion -> (v - after(range.endingBoundInclusive)).toString)
      case range: TimestampRange =>
        // Commit timestamps are whole milliseconds.
        val first = range.startingTimestamp + 1000L * after(range.startingBoundInclusive)
        val last = range.endingTimestamp.toScala.map(_.longValue)
        Map(StartingTimestamp -> format(first)) ++
          last.map(t => EndingTimestamp -> format(t - 1000L * after(range.endingBoundInclusive)))
      case _ => Map.empty
    }

  private def after(inclusive: Boolean): Long = if (inclusive) 0L else 1L

  private def format(micros: Long): String =
    PartitionValues.toLog("timestamp", TimestampType, micros)
}
