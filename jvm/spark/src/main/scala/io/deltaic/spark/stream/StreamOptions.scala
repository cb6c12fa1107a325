package io.deltaic.spark.stream

import java.util.Locale
import java.util.regex.{Pattern, PatternSyntaxException}

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.connector.read.streaming.ReadLimit
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.catalog.ChangeFeedOptions.{
  EndingTimestamp,
  EndingVersion,
  StartingTimestamp,
  StartingVersion
}

/** Where a new stream starts. */
private[stream] sealed trait StreamStart

private[stream] object StreamStart {

  /** At the current snapshot, with all rows of the table. */
  case object Everything extends StreamStart

  /** At the next commit. */
  case object Latest extends StreamStart

  final case class Version(version: Long) extends StreamStart

  /** At the first commit at or after this time, as specified by the option. */
  final case class Time(timestamp: String) extends StreamStart
}

/**
 * The options of a streaming read.
 *
 * @param ignoresDeletes whether commits that only delete rows are skipped
 * @param ignoresChanges whether the added rows of commits that delete and add rows are read
 * @param skipsChanges whether commits that delete rows are skipped, including the rows they add
 * @param excluded paths of files that are not read
 * @param failsOnLoss whether missing commits are an error
 * @param allowedChanges by kind, the version of the change of a tracked schema that is allowed, or `always`
 */
private[stream] final case class StreamOptions(
    start: StreamStart,
    maxFiles: Option[Int],
    maxBytes: Option[Long],
    ignoresDeletes: Boolean,
    ignoresChanges: Boolean,
    skipsChanges: Boolean,
    excluded: Option[Pattern],
    failsOnLoss: Boolean,
    allowedChanges: Map[SchemaChangeKind, String]
) {

  /** The limit of each batch. */
  def limit: ReadLimit = (maxFiles, maxBytes) match {
    case (Some(files), Some(bytes)) =>
      ReadLimit.compositeLimit(Array(ReadLimit.maxFiles(files), ReadLimit.maxBytes(bytes)))
    case (None, Some(bytes)) => ReadLimit.maxBytes(bytes)
    case (files, None) => ReadLimit.maxFiles(files.getOrElse(StreamOptions.DefaultMaxFiles))
  }

  def excludes(path: String): Boolean = excluded.exists(_.matcher(path).find())
}

private[stream] object StreamOptions {
  private val DefaultMaxFiles = 1000

  private val unsupported = Seq(EndingVersion, EndingTimestamp)
  private val FailOnDataLoss = "failOnDataLoss"

  /** @param table for errors */
  def of(table: String, options: CaseInsensitiveStringMap): StreamOptions = {
    unsupported.find(options.get(_) != null).foreach { option =>
      val reason = "a stream has no end. Read these versions in a batch with spark.read"
      throw invalid(table, option, options.get(option), reason)
    }
    val read = new StreamOptions.Reader(table, options)
    val ignoresFileDeletion = read.flag("ignoreFileDeletion", default = false)
    val skipsChanges = read.flag("skipChangeCommits", default = false)
    val ignoresChanges = read.flag("ignoreChanges", default = false) || ignoresFileDeletion
    val failsOnLoss = read.flag(FailOnDataLoss, default = true)
    if (!failsOnLoss && SchemaTracking.isIn(options))
      throw invalid(
        table,
        FailOnDataLoss,
        "false",
        "a missing commit may have changed the schema. Leave it out, or schemaTrackingLocation"
      )
    StreamOptions(
      start = read.start,
      maxFiles =
        read.value("maxFilesPerTrigger", s"it is a whole number from 1 to ${Int.MaxValue}") {
          _.toIntOption.filter(_ > 0)
        },
      maxBytes = read.value(
        "maxBytesPerTrigger",
        "it is a number of bytes from 1 on, such as 64m or 1g"
      )(bytes),
      ignoresDeletes =
        read.flag("ignoreDeletes", default = false) || ignoresChanges || skipsChanges,
      ignoresChanges = ignoresChanges || skipsChanges,
      skipsChanges = skipsChanges,
      excluded =
        read.string("excludeRegex").filter(_.nonEmpty).map(read.pattern("excludeRegex", _)),
      failsOnLoss = failsOnLoss,
      allowedChanges = SchemaChangeKind.all.flatMap(kind => read.allowed(kind).map(kind -> _)).toMap
    )
  }

  def invalid(table: String, option: String, value: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_STREAM_OPTION_INVALID",
      Map("table" -> table, "option" -> option, "value" -> value, "reason" -> reason)
    )

  private def bytes(string: String): Option[Long] =
    try string.toLongOption.orElse(Some(JavaUtils.byteStringAsBytes(string))).filter(_ > 0)
    catch { case _: NumberFormatException => None }

  private final class Reader(table: String, options: CaseInsensitiveStringMap) {

    def string(option: String): Option[String] = Option(options.get(option)).map(_.trim)

    def value[A](option: String, reason: String)(parse: String => Option[A]): Option[A] =
      string(option).map { given =>
        parse(given).getOrElse(throw invalid(table, option, given, reason))
      }

    def flag(option: String, default: Boolean): Boolean =
      value(option, "it is true or false")(_.toLowerCase(Locale.ROOT).toBooleanOption)
        .getOrElse(default)

    /** A version, or `always`, which is also spelled `true`. */
    def allowed(kind: SchemaChangeKind): Option[String] =
      value(kind.option, "it is always, or the version of the change that is allowed") { text =>
        val lower = text.toLowerCase(Locale.ROOT)
        if (lower == "true") Some(SchemaChangeKind.Always)
        else
          Option.when(
            lower == SchemaChangeKind.Always || lower == "false" || lower.toLongOption.isDefined
          )(lower)
      }

    def pattern(option: String, expression: String): Pattern =
      try Pattern.compile(expression)
      catch {
        case e: PatternSyntaxException => throw invalid(table, option, expression, e.getDescription)
      }

    def start: StreamStart = (string(StartingVersion), string(StartingTimestamp)) match {
      case (Some(_), Some(time)) =>
        throw invalid(
          table,
          StartingTimestamp,
          time,
          s"$StartingVersion is given, too, and one can hold"
        )
      case (Some(latest), None) if latest.equalsIgnoreCase("latest") => StreamStart.Latest
      case (Some(_), None) =>
        val version = value(StartingVersion, "it is a version, from 0 on, or latest") {
          _.toLongOption.filter(_ >= 0)
        }
        StreamStart.Version(version.get)
      case (None, Some(time)) => StreamStart.Time(time)
      case (None, None) => StreamStart.Everything
    }
  }
}
