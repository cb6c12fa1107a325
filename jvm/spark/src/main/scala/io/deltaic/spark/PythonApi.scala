package io.deltaic.spark

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, PaddingShims, SessionShims}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.functions.{max, min}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, TableSummary}
import io.deltaic.spark.bridge._
import io.deltaic.spark.catalog._
import io.deltaic.spark.scan.{FileSplits, SnapshotFiles, TableSchema}
import io.deltaic.spark.sql.{TableToDescribe, UnreadTable}
import io.deltaic.spark.write.{
  CheckpointColumns,
  CommittedVersion,
  PartitionFolders,
  SessionWriteOptions
}
import io.deltaic.upkeep.{Upkeep, UpkeepQueue}

/**
 * All that Python calls in the JVM, but for [[RowChanges]]. Paths and names come as users give them;
 * what has structure crosses as JSON.
 */
object PythonApi {

  def version(): String = Version.current

  /** Hands the JVM the committer by which every write of this process commits. */
  def registerCommitter(committer: Committer): Unit = Committers.register(committer)

  def isDeltaTable(spark: SparkSession, path: String): Boolean =
    TableLocation.log(spark, path).exists

  /** What a version says beside its files; the newest for version -1. */
  def header(spark: SparkSession, path: String, version: Long): String = {
    val log = TableLocation.log(spark, path)
    val snapshot = if (version < 0) log.latest() else log.at(version)
    Told.header(snapshot, _ => true).toString
  }

  /** The newest version with the number and size of its files, without its transactions. */
  def summary(spark: SparkSession, path: String): String = {
    val log = TableLocation.log(spark, path)
    val summary = log.latestFromChecksum().getOrElse {
      val snapshot = log.latestUnjudged()
      TableSummary(
        snapshot.version,
        snapshot.timestampMs,
        snapshot.protocol,
        snapshot.metadata,
        snapshot.domains,
        snapshot.size.getOrElse(
          SnapshotFiles(spark, log, snapshot, TableSchema.of(snapshot)).size
        )
      )
    }
    Told.header(
      summary.version,
      summary.timestampMs,
      summary.protocol,
      summary.metadata,
      summary.domains
    ).put("numFiles", summary.size.numFiles).put("sizeBytes", summary.size.sizeBytes).toString
  }

  /** The last version committed at or before a time, in milliseconds since the epoch. */
  def versionAt(spark: SparkSession, path: String, timestampMs: Long): Long =
    TableLocation.requireExists(spark, TableLocation.log(spark, path)).versionAt(timestampMs)

  /** Commits newest first, as a JSON array; all that the log still has for limit -1. */
  def commitInfos(spark: SparkSession, path: String, limit: Int): String = {
    val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
    val newest = Option.when(limit >= 0)(limit)
    val commits = log.commitInfos(newestFirst = true, newest).map {
      case (version, timestampMs, info) =>
        Json.obj(
          "version" -> version,
          "timestampMs" -> timestampMs,
          "commitInfo" -> info.map(_.json)
        )
    }
    Json.of(commits.toSeq).toString
  }

  /** A commit of header actions only, for commands that touch no file. */
  def prepareHeaderCommit(spark: SparkSession, path: String, summary: String): PreparedCommit =
    prepare(spark, TableLocation.log(spark, path), Json.parse(summary), FileChanges())

  /** A commit that adds the files without row ids anew, for them to get some; null if all have. */
  def prepareRowIds(spark: SparkSession, path: String, summary: String): PreparedCommit = {
    val outline = Json.parse(summary)
    val log = TableLocation.log(spark, path)
    val snapshot = log.at(outline.required("readVersion").longValue)
    val older = snapshot.adds.filter(_.baseRowId.isEmpty).map(_.copy(dataChange = false)).toVector
    if (older.isEmpty) null else prepare(spark, log, outline, FileChanges(adds = older))
  }

  private def prepare(
      spark: SparkSession,
      log: DeltaLog,
      summary: JsonNode,
      changes: FileChanges
  ): PreparedCommit = {
    val readVersion = summary.required("readVersion").longValue
    new PreparedCommit(
      CommitRequest(
        log = log,
        readVersion = readVersion,
        operation = summary.path("operation").asText,
        operationParameters = Json.strings(summary.get("operationParameters")),
        plan = summary.get("plan") match {
          case plan: ObjectNode => plan
          case _ => Json.obj()
        },
        isBlindAppend = summary.path("isBlindAppend").asBoolean(false),
        options =
          SessionWriteOptions.userMetadata(spark) ++ Json.strings(summary.get("options")),
        changes = changes,
        readSet =
          if (summary.path("readsWholeTable").asBoolean(false)) ReadSet.everything
          else ReadSet.nothing,
        readCommit = Option.when(readVersion >= 0)(readVersion).flatMap(log.commitFile)
      ),
      CommittedVersion.tell(spark, log.table, _)
    )
  }

  /** The version of Spark, and those settings of the session that are ours. */
  def sessionState(spark: SparkSession): String = Told.session(spark).toString

  /** Which tasks of a table's upkeep failed, and the newest checkpoint that this process knows of. */
  def upkeepState(commit: PreparedCommit): String = Told.upkeep(commit.log).toString

  /** See [[io.deltaic.upkeep.Upkeep.newestCheckpoint]]. */
  def newestCheckpoint(spark: SparkSession, commit: PreparedCommit, notBelow: Long): Long =
    upkeepOf(spark, commit.log).newestCheckpoint(notBelow)

  /** Does what is due after a commit, or leaves it to a thread of its own. Of failures it logs. */
  def upkeep(
      spark: SparkSession,
      commit: PreparedCommit,
      version: Long,
      requestJson: String
  ): Unit = run(spark, commit.log, version, requestJson)

  /** As `upkeep`, for a version that whoever committed. */
  def upkeepOfTable(
      spark: SparkSession,
      path: String,
      version: Long,
      requestJson: String
  ): Unit = {
    val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
    run(spark, log, version, requestJson)
  }

  /** A thread of the background has no session, whose settings what it runs may ask for. */
  private def run(spark: SparkSession, log: DeltaLog, version: Long, requestJson: String): Unit = {
    val upkeep = upkeepOf(spark, log)
    val request = UpkeepRequest.parse(requestJson)
    val due = upkeep.due(version, request.tasks)
    val work = SessionShims.underSettingsOf(spark)(due)
    if (request.inBackground) UpkeepQueue.submit(upkeep.table)(work) else work()
  }

  /** Waits until what past commits have left to the background is done; false if it takes longer. */
  def awaitUpkeep(timeoutMs: Long): Boolean = UpkeepQueue.await(timeoutMs)

  private def upkeepOf(spark: SparkSession, log: DeltaLog): Upkeep = {
    val zone = FileSplits.sessionZone(spark)
    new Upkeep(log, CheckpointColumns.of(_, zone), PartitionFolders.of)
  }

  /** A row of a version that breaks a condition, as `{"row": ...}`, with null if all rows meet it. */
  def firstViolation(
      spark: SparkSession,
      path: String,
      version: Long,
      name: String,
      condition: String
  ): String = {
    val log = TableLocation.log(spark, path)
    val row = ConstraintValidation.firstViolation(spark, log, version, name, condition)
    Json.obj("row" -> row).toString
  }

  /** The columns that each expression of a JSON array speaks of, each as a path; null if any may be meant. */
  def columnsIn(spark: SparkSession, schemaString: String, expressionsJson: String): String = {
    val columns = DataType.fromJson(schemaString).asInstanceOf[StructType]
    Json.of(Json.parseStrings(expressionsJson).map(ReferredColumns.in(spark, columns, _))).toString
  }

  /** The largest or smallest value of a column in a version, as `{"value": ...}`, with null if none. */
  def furthestValue(
      spark: SparkSession,
      path: String,
      version: Long,
      column: String,
      largest: Boolean
  ): String = {
    val log = TableLocation.log(spark, path)
    val table = new DeltaicTable(spark, log, log.at(version), TableOrigin.TimeTravel)
    val relation = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
    val rows = SessionShims.run(spark, relation)
    val value = rows.col(quoteIfNeeded(column))
    val found = rows.agg(if (largest) max(value) else min(value)).head()
    Json.obj("value" -> found.get(0)).toString
  }

  /**
   * A file of a version that is not as Iceberg readers need it under a definition, as `{"path", "reason"}`; empty if
   * there is none.
   */
  def unfitForIceberg(
      spark: SparkSession,
      path: String,
      version: Long,
      metaDataJson: String,
      numbersColumns: Boolean
  ): String = {
    val metadata = ActionBody.metadata(Json.parse(metaDataJson))
    val log = TableLocation.log(spark, path)
    IcebergFiles.of(metadata, numbersColumns).firstUnfit(spark, log, version).fold(Json.obj()) {
      case (file, reason) => Json.obj("path" -> file, "reason" -> reason)
    }.toString
  }

  /** The path and full name of a table in the catalog. */
  def resolveName(spark: SparkSession, name: String): String = {
    def notDelta(found: String): Nothing = throw DeltaicException(
      "DELTAIC_NAME_IS_NOT_A_TABLE",
      Map("name" -> name, "found" -> found)
    )
    def unread(e: DeltaicThrowable): UnreadTable = {
      val parts = spark.sessionState.sqlParser.parseMultipartIdentifier(name)
      TableToDescribe(parts, "DeltaTable.forName").unread(spark).getOrElse(throw e)
    }
    try resolved(EliminateSubqueryAliases(spark.table(name).queryExecution.analyzed), notDelta)
    catch {
      case e: DeltaicThrowable if e.condition != "DELTAIC_NAME_IS_NOT_A_TABLE" =>
        val table = unread(e)
        Json.obj("path" -> table.path, "name" -> table.name.getOrElse(table.path)).toString
    }
  }

  private def resolved(named: LogicalPlan, notDelta: String => Nothing): String =
    PaddingShims.withoutPadding(named) match {
      case relation: DataSourceV2Relation =>
        relation.table match {
          case older: DeltaicTable if !older.followsNewVersions =>
            notDelta(s"version ${older.snapshot.version} of the table ${older.log.table}")
          case table: DeltaicTable =>
            Json.obj("path" -> table.log.table.toString, "name" -> relation.name).toString
          case other => notDelta(s"the table ${other.name} of another format")
        }
      case _: View => notDelta("a view")
      case _ => notDelta("a table of another format")
    }

  /** Creates or replaces a table as a builder of Python describes it. */
  def createTable(spark: SparkSession, definitionJson: String): Unit = {
    JobShims.calledAs(spark, "DeltaTableBuilder.execute") {
      SessionShims.run(spark, new TableBuilding(spark, Json.parse(definitionJson)).plan)
    }
    ()
  }
}
