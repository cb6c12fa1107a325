package io.deltaic.spark.stream

import java.util.{HashMap => JHashMap}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.log.CommitFile
import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.schema.{ColumnKeys, ReadCompatibility}

/**
 * The schema that a stream reads a table with while the table's schema changes (option `schemaTrackingLocation`).
 *
 * A commit that changes the schema, a property or the protocol ends a batch right before its files. When that batch is
 * done, the new definition is recorded, and the query fails. A DataFrame that is created after that has the new columns,
 * and its query continues where the other one stopped.
 *
 * @param read the definition that the DataFrame has
 * @param schemas has the definition that was recorded last
 * @param number of the entry with which the DataFrame was analyzed, -1 if there was none
 * @param checkpoint the source's checkpoint directory
 */
private[stream] final class SchemaTracking private (
    spark: SparkSession,
    log: DeltaLog,
    read: Snapshot,
    options: StreamOptions,
    schemas: SchemaTrackingLog,
    number: Long,
    checkpoint: String
) {
  import SchemaTracking._

  private val table = log.table.toString

  /** The entry with which rows are read, and its number. */
  private var current: Option[(Long, TrackedSchema)] = {
    val latest = schemas.latest
    latest.foreach { case (latestNumber, entry) =>
      if (entry.sourcePath != checkpoint) throw shared(entry.sourcePath)
      val recorded = entry.definition(read)
      if (latestNumber != number && differs(Some(recorded.protocol), Some(recorded.metadata)))
        throw fail(
          "DELTAIC_STREAM_COLUMNS_OUTDATED",
          "version" -> entry.version.toString,
          "readVersion" -> read.version.toString
        )
      requireAllowed(latestNumber, entry)
    }
    latest
  }

  /** Whether a commit has another definition than the one that is read. */
  def isChange(commit: CommitFile): Boolean = current.exists { case (_, entry) =>
    // Changes up to the entry were merged into it: see `SchemaTracking.analyze`.
    commit.version > entry.version && differs(commit.protocol, commit.metadata)
  }

  /** Records the change of a version, up to which all batches are done, and fails the query, unless it is recorded. */
  def recordChange(version: Long): Unit =
    if (current.exists(_._2.version < version)) {
      val commit = commitAt(version)
      if (isChange(commit)) {
        val protocol = commit.protocol.getOrElse(read.protocol)
        val metadata = commit.metadata.getOrElse(read.metadata)
        record(entryOf(version, protocol, metadata), replaces = false)
        throw tracked(version)
      }
    }

  /**
   * Requires that a stream that starts here reads the definition of that version; if it does not, records it, and fails
   * the query.
   */
  def startAt(version: Long): Unit = {
    val start = log.at(version.min(log.latest().version))
    val isRead = !differs(Some(start.protocol), Some(start.metadata))
    current match {
      case None => initialize(start)
      case Some((_, entry)) if isRead || isMerged(start.version, entry.version) => ()
      case Some(_) =>
        record(entryOf(start.version, start.protocol, start.metadata), replaces = true)
        throw initialized(start.version)
    }
  }

  /** Records the definition of the version that a query has read completely, if none is recorded. */
  def continueAfter(version: Long): Unit = if (current.isEmpty) initialize(log.at(version))

  /**
   * The same for a batch that was planned before the schema was tracked: one definition must be able to read all of it.
   */
  def continueIn(first: Long, last: Long): Unit = if (current.isEmpty) {
    val end = log.at(last)
    val changed = log.commitFiles(first, last).flatMap(_.metadata)
    (Iterator.single(log.at(first).metadata) ++ changed).foreach { metadata =>
      if (!ReadCompatibility.holds(metadata, end.metadata, dataIsOlder = true, readsWidened = true))
        throw batchAcrossChange(last)
    }
    initialize(end)
  }

  private def initialize(version: Snapshot): Unit = {
    record(entryOf(version.version, version.protocol, version.metadata), replaces = false)
    if (differs(Some(version.protocol), Some(version.metadata))) throw initialized(version.version)
  }

  private def entryOf(version: Long, protocol: Protocol, metadata: Metadata) =
    TrackedSchema.of(read.metadata.id, version, protocol, metadata, checkpoint)

  /** @param replaces whether the current entry is not the one before */
  private def record(entry: TrackedSchema, replaces: Boolean): Unit = {
    val next = current.fold(0L)(_._1 + 1)
    val previous = current.filter(_ => replaces).map { case (number, entry) =>
      previousNumber(number, entry)
    }
    val recorded = entry.copy(previous = previous)
    if (!schemas.add(next, recorded))
      // A DataFrame that was created meanwhile may have added it: see `SchemaTracking.analyze`.
      throw schemas.entry(next).filterNot(_.sourcePath == checkpoint).fold(tracked(entry.version)) {
        other => shared(other.sourcePath)
      }
    current = Some((next, recorded))
  }

  private def requireAllowed(number: Long, entry: TrackedSchema): Unit =
    schemas.entry(previousNumber(number, entry)).foreach { before =>
      val changes = SchemaChanges.between(before.schema, entry.schema)
      if (changes.incompatible.nonEmpty)
        throw fail(
          "DELTAIC_STREAM_SCHEMA_CHANGE_UNSUPPORTED",
          "previous" -> before.version.toString,
          "version" -> entry.version.toString,
          "columns" -> changes.incompatible.mkString(", ")
        )
      val checkpointId = s"ckpt_${checkpoint.hashCode}"
      val refused = changes.notAllowed(spark, options, entry.version, checkpointId)
      if (refused.nonEmpty) {
        val settings = refused.map(kind => s"spark.deltaic.${kind.settings.head}.$checkpointId")
        throw fail(
          "DELTAIC_STREAM_SCHEMA_CHANGE_NOT_ALLOWED",
          "previous" -> before.version.toString,
          "version" -> entry.version.toString,
          "changes" -> changes.kinds.map(_._2).mkString("; "),
          "options" -> refused.map(_.option).mkString(", "),
          "settings" -> settings.mkString(", ")
        )
      }
    }

  private def differs(protocol: Option[Protocol], metadata: Option[Metadata]): Boolean =
    protocol.exists(comparable(_) != comparable(read.protocol)) ||
    metadata.exists(comparable(_) != comparable(read.metadata))

  /** Whether each version from one to another one changes the definition, and no file. */
  private def isMerged(first: Long, last: Long): Boolean =
    first < last && definitionsFrom(log, first, last).exists(_.version == last)

  private def commitAt(version: Long): CommitFile =
    if (log.hasCommit(version)) log.commitFiles(version, version).next()
    else
      throw fail(
        "DELTAIC_STREAM_DATA_LOST",
        "version" -> version.toString,
        "earliest" -> log.earliestCommit.toString
      )

  /** The error for a batch, planned without tracking, whose rows one definition cannot read. */
  def batchAcrossChange(version: Long): DeltaicThrowable =
    fail("DELTAIC_STREAM_BATCH_ACROSS_SCHEMA_CHANGE", "version" -> version.toString)

  private def tracked(version: Long) = recorded("DELTAIC_STREAM_SCHEMA_TRACKED", version)

  private def initialized(version: Long) =
    recorded("DELTAIC_STREAM_SCHEMA_TRACKING_INITIALIZED", version)

  private def recorded(condition: String, version: Long) =
    fail(condition, "version" -> version.toString, "location" -> schemas.toString)

  private def shared(other: String) = fail(
    "DELTAIC_STREAM_SCHEMA_LOCATION_SHARED",
    "location" -> schemas.toString,
    "source" -> checkpoint,
    "other" -> other
  )

  private def fail(condition: String, parameters: (String, String)*): DeltaicThrowable =
    DeltaicException(condition, Map("table" -> table) ++ parameters)
}

private[spark] object SchemaTracking {
  private val LocationOptions = Seq("schemaTrackingLocation", "schemaLocation")
  private val TrackingId = "streamingSourceTrackingId"

  /** What only writers need of a column, such as the high-water mark of an identity column, which a write changes. */
  private val ofWriters = ColumnKeys.OfPlans ++ Seq(
    ColumnKeys.CurrentDefault,
    ColumnKeys.GenerationExpression,
    ColumnKeys.IdentityStart,
    ColumnKeys.IdentityStep,
    ColumnKeys.IdentityHighWaterMark,
    ColumnKeys.IdentityAllowExplicitInsert
  )

  /** The number of the entry with which a DataFrame was analyzed, as an option of its relation. */
  private val Number = "deltaic.trackedSchema"

  def isIn(options: CaseInsensitiveStringMap): Boolean = location(options).isDefined

  def isAnalyzed(options: CaseInsensitiveStringMap): Boolean = options.containsKey(Number)

  /** Where the user wants schemas to be recorded. */
  def location(options: CaseInsensitiveStringMap): Option[String] =
    locations(options).headOption.map(_._2)

  private def locations(options: CaseInsensitiveStringMap): Seq[(String, String)] =
    LocationOptions.flatMap(option => Option(options.get(option)).map(option -> _))

  private def requireOneLocation(table: String, options: CaseInsensitiveStringMap): Unit = {
    val chosen = locations(options)
    chosen.find(_._2.trim.isEmpty).foreach { case (option, value) =>
      throw StreamOptions.invalid(table, option, value, "it is a folder in the checkpointLocation")
    }
    if (chosen.map(_._2).distinct.size > 1)
      throw StreamOptions.invalid(
        table,
        chosen(1)._1,
        chosen(1)._2,
        s"it is another name of ${chosen.head._1}, which is ${chosen.head._2}. Leave one of them out"
      )
  }

  /**
   * The log of a source of a stream.
   *
   * @param table some version of its table
   */
  def logOf(
      spark: SparkSession,
      table: Snapshot,
      options: CaseInsensitiveStringMap
  ): Option[SchemaTrackingLog] = location(options).map { location =>
    requireOneLocation(table.table.toString, options)
    val trackingId = Option(options.get(TrackingId))
    SchemaTrackingLog(spark, table.table, table.metadata.id, location, trackingId)
  }

  /**
   * The definition that a DataFrame has, None if none is recorded yet, and the options of its relation.
   *
   * If only definitions change in the versions after the recorded one, the last of them is recorded, so that the query
   * does not fail at each of them. Analysis records it, as in delta-spark, because the DataFrame has its columns.
   */
  def analyze(
      log: DeltaLog,
      schemas: SchemaTrackingLog,
      options: CaseInsensitiveStringMap
  ): (Option[Snapshot], CaseInsensitiveStringMap) = {
    val latest = log.latest()
    schemas.latest.foreach { case (number, entry) =>
      merged(log, entry, latest.version).foreach { newer =>
        // If the entry exists already, another query has added it, and that one is used.
        schemas.add(number + 1, newer.copy(previous = Some(previousNumber(number, entry))))
      }
    }
    val found = schemas.latest
    val marked = new JHashMap(options.asCaseSensitiveMap)
    marked.put(Number, found.fold(-1L)(_._1).toString)
    (found.map(_._2.definition(latest)), new CaseInsensitiveStringMap(marked))
  }

  /** The tracking of a source that starts. */
  private[stream] def of(
      spark: SparkSession,
      log: DeltaLog,
      read: Snapshot,
      options: StreamOptions,
      settings: CaseInsensitiveStringMap,
      checkpoint: String
  ): Option[SchemaTracking] = logOf(spark, read, settings).map { schemas =>
    if (!isAnalyzed(settings))
      throw new IllegalStateException(s"the tracked schema of ${log.table} was not resolved")
    val number = settings.getLong(Number, -1L)
    new SchemaTracking(spark, log, read, options, schemas, number, checkpoint)
  }

  /** The number of the entry before one, or its own if it is the first: a stream may have read rows with that one. */
  private def previousNumber(number: Long, entry: TrackedSchema): Long =
    entry.previous.getOrElse(number - 1) match {
      case before if before < 0 => number
      case before => before
    }

  private def merged(log: DeltaLog, entry: TrackedSchema, last: Long): Option[TrackedSchema] = {
    val commits = definitionsFrom(log, entry.version, last).toVector
    commits.lastOption.filter(_.version > entry.version).map { newest =>
      val later = commits.filter(_.version > entry.version)
      val metadata = later.flatMap(_.metadata).lastOption
      entry.copy(
        version = newest.version,
        schemaString = metadata.fold(entry.schemaString)(_.schemaString),
        partitionColumns = metadata.fold(entry.partitionColumns)(_.partitionColumns),
        configuration = metadata.map(_.configuration).orElse(entry.configuration),
        protocol = later.flatMap(_.protocol).lastOption.orElse(entry.protocol)
      )
    }
  }

  /** The commits from a version on, as long as they change the definition and no file. */
  private def definitionsFrom(log: DeltaLog, first: Long, last: Long): Iterator[CommitFile] =
    if (first > last || !log.hasCommit(first)) Iterator.empty
    else
      log.commitFiles(first, last).takeWhile { commit =>
        val hasFiles = commit.actions.exists {
          case _: FileAction | _: AddCdcFile => true
          case _ => false
        }
        !hasFiles && (commit.metadata.isDefined || commit.protocol.isDefined)
      }

  private def comparable(protocol: Protocol): Any = (
    protocol.minReaderVersion,
    protocol.minWriterVersion,
    protocol.readerFeatures.getOrElse(Set.empty),
    protocol.writerFeatures.getOrElse(Set.empty)
  )

  private def comparable(metadata: Metadata): Any = (
    ColumnKeys.without(
      ofWriters,
      DataType.fromJson(metadata.schemaString).asInstanceOf[StructType]
    ),
    metadata.partitionColumns,
    metadata.configuration.filter { case (key, _) => key.startsWith("delta.") }
  )
}
