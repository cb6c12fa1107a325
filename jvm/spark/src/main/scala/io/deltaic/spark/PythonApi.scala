package io.deltaic.spark

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, PaddingInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{DataType, StructType}

import io.deltaic.maintenance.MaintenanceQueue
import io.deltaic.protocol._
import io.deltaic.replay.TableSummary
import io.deltaic.spark.catalog.definition.{
  CommitMaintenance,
  ConstraintValidation,
  IcebergFiles,
  PythonCommand,
  ReferredColumns,
  TableBuilding
}
import io.deltaic.spark.catalog.{DeltaicTable, TableLocation}
import io.deltaic.spark.clone.TableClone
import io.deltaic.spark.commit.{
  ActionBody,
  CommitFiles,
  Committer,
  Committers,
  MaintenanceRequest,
  Message,
  PrefetchedState,
  PreparedCommit
}
import io.deltaic.spark.convert.{Conversion, ConversionTarget}
import io.deltaic.spark.downgrade.{FeatureHistory, FeatureTraces}
import io.deltaic.spark.optimize.{AutoCompaction, ColumnMappingRemoval, DowngradeRequest}
import io.deltaic.spark.restore.TableRestore
import io.deltaic.spark.scan.files.SnapshotFiles
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.sql.command.{
  CloneRequest,
  CloneTable,
  ConvertCommand,
  TableAtPath,
  TableToDescribe,
  UnreadableTable
}
import io.deltaic.spark.util.{Cancellation, Json, Version}
import io.deltaic.spark.vacuum.{VacuumRequest, VacuumRun}

/**
 * The JVM methods that Python calls, except those of [[RowLevelStatements]]. Paths and names are passed as users
 * give them; structured values are passed as JSON, where null stands for none.
 */
object PythonApi {

  def version(): String = Version.current

  /** Registers the committer that every write of this process uses. */
  def registerCommitter(committer: Committer): Unit = Committers.register(committer)

  def isDeltaTable(spark: SparkSession, path: String): Boolean =
    TableLocation.log(spark, path).exists

  /** The non-file actions of a version; of the newest for version -1. */
  def snapshot(spark: SparkSession, path: String, version: Long): String = {
    val log = TableLocation.log(spark, path)
    val snapshot = if (version < 0) log.latest() else log.at(version)
    PrefetchedState.nonFileActions(snapshot, _ => true).toString
  }

  /** The newest version with the number and size of its files, without its transactions. */
  def summary(spark: SparkSession, path: String): String = {
    val log = TableLocation.log(spark, path)
    val summary = log.latestFromChecksum().getOrElse {
      val snapshot = log.latestUnchecked()
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
    PrefetchedState.nonFileActions(summary).toString
  }

  /** Commits, newest first, as a JSON array; all that the log retains for limit -1. */
  def commitInfos(spark: SparkSession, path: String, limit: Int): String = {
    val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
    val newest = Option.when(limit >= 0)(limit)
    val commits = log.commitInfos(newestFirst = true, newest).map {
      case (version, timestampMs, info) =>
        Message.of("CommitRecord")(
          "version" -> version,
          "timestampMs" -> timestampMs,
          "commitInfo" -> info.map(_.json)
        )
    }
    Json.of(commits.toSeq).toString
  }

  /** A commit of non-file actions only, for commands that change no file. */
  def prepareMetadataCommit(spark: SparkSession, path: String, summary: String): PreparedCommit =
    PythonCommand.prepare(spark, TableLocation.log(spark, path), Json.parse(summary), CommitFiles())

  /** A commit that re-adds the files without row IDs, which assigns them; null if all files have them. */
  def prepareRowIds(spark: SparkSession, path: String, summary: String): PreparedCommit = {
    val outline = Json.parse(summary)
    val log = TableLocation.log(spark, path)
    val snapshot = log.at(outline.required("readVersion").longValue)
    val older = snapshot.adds.filter(_.baseRowId.isEmpty).map(_.copy(dataChange = false)).toVector
    if (older.isEmpty) null
    else PythonCommand.prepare(spark, log, outline, CommitFiles(adds = older))
  }

  /** The newest version that was committed at or before a timestamp, in the session's time zone. */
  def versionAt(spark: SparkSession, path: String, timestamp: String): Long =
    TableRestore.versionAt(spark, TableLocation.log(spark, path), timestamp)

  /** A commit that restores the files of a version; see [[TableRestore.prepare]]. */
  def prepareRestore(
      spark: SparkSession,
      path: String,
      version: Long,
      summary: String
  ): PreparedCommit =
    TableRestore.prepare(spark, TableLocation.log(spark, path), version, Json.parse(summary))

  /** A commit that makes a table a clone of a version of another one; see [[TableClone.prepare]]. */
  def prepareClone(
      spark: SparkSession,
      path: String,
      source: String,
      version: Long,
      isShallow: Boolean,
      summary: String
  ): PreparedCommit =
    TableClone.prepare(
      spark,
      TableLocation.log(spark, path),
      TableLocation.log(spark, source),
      version,
      isShallow,
      Json.parse(summary)
    )

  /** A commit that makes a table a clone of Parquet files, which [[readParquet]] has read. */
  def prepareParquetClone(
      spark: SparkSession,
      path: String,
      source: Conversion,
      isShallow: Boolean,
      summary: String
  ): PreparedCommit = TableClone.prepare(
    spark,
    TableLocation.log(spark, path),
    source.table,
    isShallow,
    Json.parse(summary)
  )

  /** Runs CLONE of the table at a path, as a statement; see [[CloneRequest]]. */
  def cloneTable(spark: SparkSession, path: String, request: String): Unit = {
    val clone = CloneRequest.of(spark, Json.parse(request))
    SessionInternals.run(spark, CloneTable.of(TableAtPath(path), clone))
    ()
  }

  /** The Parquet files in a folder that become a table, by a `ParquetRequest`; see [[Conversion]]. */
  def readParquet(spark: SparkSession, path: String, requestJson: String): Conversion =
    Conversion.read(spark, TableLocation.log(spark, path), Json.parse(requestJson))

  /**
   * Runs CONVERT TO DELTA.
   *
   * @param identifier as in the statement
   * @param partitioning the partition columns as DDL or JSON; null if they are not stated
   * @return the path, and the full name of a table of the catalog
   */
  def convertToDelta(spark: SparkSession, identifier: String, partitioning: String): String = {
    val parser = spark.sessionState.sqlParser
    val name = parser.parseMultipartIdentifier(identifier)
    val columns = Option(partitioning).map {
      case json if json.trim.startsWith("{") => DataType.fromJson(json).asInstanceOf[StructType]
      case ddl => parser.parseTableSchema(ddl)
    }
    JobInternals.calledAs(spark, "DeltaTable.convertToDelta") {
      val command = ConvertCommand.of(name, columns, collectsStatistics = true)
      SessionInternals.run(spark, command)
    }
    val target = ConversionTarget.of(spark, name)
    val path = TableLocation.log(spark, target.location).table.toString
    Json.obj("path" -> path, "name" -> target.name).toString
  }

  /** Writes the symlink manifests of a table. */
  def generateManifests(spark: SparkSession, path: String): Unit =
    CommitMaintenance.of(spark, TableLocation.log(spark, path)).generateManifests()

  /** The Spark version and the session's settings of Deltaic. */
  def sessionState(spark: SparkSession): String = PrefetchedState.session(spark).toString

  /** The failed maintenance tasks of a table, and the newest checkpoint known to this process. */
  def maintenanceState(commit: PreparedCommit): String =
    PrefetchedState.maintenance(commit.log).toString

  /** See [[io.deltaic.maintenance.Maintenance.newestCheckpoint]]. */
  def newestCheckpoint(spark: SparkSession, commit: PreparedCommit, notBelow: Long): Long =
    CommitMaintenance.of(spark, commit.log).newestCheckpoint(notBelow)

  /** The same for the table at a path, before its commit is prepared. */
  def newestCheckpoint(spark: SparkSession, path: String, notBelow: Long): Long =
    CommitMaintenance.of(spark, TableLocation.log(spark, path)).newestCheckpoint(notBelow)

  /** Runs the maintenance due after a commit, here or on a background thread. Failures are logged. */
  def maintenance(
      spark: SparkSession,
      commit: PreparedCommit,
      version: Long,
      requestJson: String
  ): Unit = {
    val request = MaintenanceRequest.parse(requestJson)
    CommitMaintenance.run(spark, commit.log, version, request, commit.newFiles)
  }

  /** As `maintenance`, for a version that any writer may have committed. */
  def maintenanceOfTable(
      spark: SparkSession,
      path: String,
      version: Long,
      requestJson: String
  ): Unit = {
    val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
    CommitMaintenance.run(spark, log, version, MaintenanceRequest.parse(requestJson))
  }

  /** Waits until background maintenance of earlier commits is done; false on timeout. */
  def awaitMaintenance(timeoutMs: Long): Boolean =
    // A compaction is a commit, too.
    AutoCompaction.await(timeoutMs) && MaintenanceQueue.await(timeoutMs)

  /** A row of a version that violates a condition, as a JSON string; null if all rows satisfy it. */
  def firstViolation(
      spark: SparkSession,
      path: String,
      version: Long,
      name: String,
      condition: String
  ): String = {
    val log = TableLocation.log(spark, path)
    Json.of(ConstraintValidation.firstViolation(spark, log, version, name, condition)).toString
  }

  /** The columns that each expression of a JSON array references, as paths; null if it may reference any. */
  def columnsIn(spark: SparkSession, schemaString: String, expressionsJson: String): String = {
    val columns = DataType.fromJson(schemaString).asInstanceOf[StructType]
    Json.of(Json.parseStrings(expressionsJson).map(ReferredColumns.in(spark, columns, _))).toString
  }

  /**
   * A file of a version that Iceberg readers cannot read under the given metadata, as an `IncompatibleFile`; null
   * if there is none.
   */
  def firstIcebergIncompatibleFile(
      spark: SparkSession,
      path: String,
      version: Long,
      metaDataJson: String,
      compatVersion: Int
  ): String = {
    val metadata = ActionBody.metadata(Json.parse(metaDataJson))
    val log = TableLocation.log(spark, path)
    val found = IcebergFiles.of(metadata, compatVersion).firstUnfit(spark, log, version)
    Json.of(found.map { case (file, reason) =>
      Message.of("IncompatibleFile")("path" -> file, "reason" -> reason)
    }).toString
  }

  /** Finds the files that VACUUM deletes, by a [[VacuumRequest]]. */
  def findUnusedFiles(spark: SparkSession, path: String, requestJson: String): VacuumRun =
    VacuumRequest.of(Json.parse(requestJson)).find(spark, TableLocation.log(spark, path))

  /** Cancels all jobs, as well as statements of Deltaic that are between two jobs. */
  def cancelAll(context: SparkContext): Unit = {
    Cancellation.cancelAll()
    context.cancelAllJobs()
  }

  /** Runs VACUUM with the arguments of the statement, and returns its result. */
  def vacuum(spark: SparkSession, path: String, argumentsJson: String): DataFrame = {
    val arguments = Json.parse(argumentsJson).properties().asScala
      .map(argument => argument.getKey -> argument.getValue).toMap
    SessionTable.at(spark, path).vacuum(arguments)
  }

  /** The path and full name of a table in the catalog. */
  def resolveName(spark: SparkSession, name: String): String = {
    def notDelta(found: String): Nothing = throw DeltaicException(
      "DELTAIC_NAME_IS_NOT_A_TABLE",
      Map("name" -> name, "found" -> found)
    )
    def locate(e: DeltaicThrowable): UnreadableTable = {
      val parts = spark.sessionState.sqlParser.parseMultipartIdentifier(name)
      TableToDescribe(parts, "DeltaTable.forName").locate(spark).getOrElse(throw e)
    }
    try resolved(EliminateSubqueryAliases(spark.table(name).queryExecution.analyzed), notDelta)
    catch {
      case e: DeltaicThrowable if e.condition != "DELTAIC_NAME_IS_NOT_A_TABLE" =>
        val table = locate(e)
        Json.obj("path" -> table.path, "name" -> table.name.getOrElse(table.path)).toString
    }
  }

  private def resolved(named: LogicalPlan, notDelta: String => Nothing): String =
    PaddingInternals.withoutPadding(named) match {
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

  /**
   * Compacts the files of a table, or orders its rows, in the partitions that the predicate selects unless it is null.
   *
   * @param zOrderBy names of columns; none to compact
   * @param isFull whether all files of a clustered table are clustered again
   */
  def optimize(
      spark: SparkSession,
      path: String,
      predicate: String,
      zOrderBy: java.util.List[String],
      isFull: Boolean
  ): DataFrame =
    SessionTable.at(spark, path).optimize(Option(predicate), zOrderBy.asScala.toSeq, isFull)

  /** REORG with PURGE, in the partitions that the predicate selects unless it is null. */
  def purge(spark: SparkSession, path: String, predicate: String): DataFrame =
    SessionTable.at(spark, path).purge(Option(predicate))

  /** Rewrites the files that use a feature which is being dropped, and returns their number. */
  def rewriteFilesWithout(spark: SparkSession, path: String, feature: String): Long = {
    val rewrite =
      if (feature == "columnMapping") ColumnMappingRemoval else DowngradeRequest(feature)
    rewrite.run(spark, TableLocation.log(spark, path)).get("numFilesRemoved").longValue
  }

  /** Whether files of a version use a feature. */
  def filesUse(spark: SparkSession, path: String, version: Long, feature: String): Boolean =
    FeatureTraces.inFiles(TableLocation.log(spark, path), version, feature)

  /** See [[FeatureTraces.vectorTombstones]]; null if there is nothing to commit. */
  def prepareVectorTombstones(spark: SparkSession, path: String, summary: String): PreparedCommit =
    FeatureTraces
      .vectorTombstones(spark, TableLocation.log(spark, path), Json.parse(summary)).orNull

  /** See [[FeatureTraces.withoutRowIds]]; null if no file has row IDs. */
  def prepareWithoutRowIds(spark: SparkSession, path: String, summary: String): PreparedCommit =
    FeatureTraces.withoutRowIds(spark, TableLocation.log(spark, path), Json.parse(summary)).orNull

  /** Writes a classic checkpoint of a version, or fails. */
  def writeCheckpoint(spark: SparkSession, path: String, version: Long): Unit =
    CommitMaintenance.of(spark, TableLocation.log(spark, path)).writeCheckpoint(version)

  /** See [[io.deltaic.maintenance.Maintenance.truncateLog]]. */
  def truncateLog(
      spark: SparkSession,
      path: String,
      retentionMs: Long,
      protectedVersion: Long
  ): Unit =
    CommitMaintenance.of(spark, TableLocation.log(spark, path))
      .truncateLog(retentionMs, protectedVersion)

  /** See [[FeatureHistory.newestUse]]; null as JSON if there is none. */
  def newestUse(
      spark: SparkSession,
      path: String,
      feature: String,
      last: Long,
      protectedVersion: Long
  ): String = {
    val log = TableLocation.log(spark, path)
    val history = new FeatureHistory(log, CommitMaintenance.of(spark, log))
    Json.of(history.newestUse(feature, last, protectedVersion)).toString
  }

  /**
   * Creates or replaces a table from the definition of Python's `DeltaTableBuilder`.
   *
   * @return its location with its file system, as the log and the catalog have it; null if none is stated
   */
  def createTable(spark: SparkSession, definitionJson: String): String = {
    val definition = Json.parse(definitionJson)
    val location = Option(definition.get("location")).filter(_.isTextual)
      .map(stated => TableLocation.log(spark, stated.textValue).table.toString)
    location.foreach(definition.put("location", _))
    JobInternals.calledAs(spark, "DeltaTableBuilder.execute") {
      SessionInternals.run(spark, new TableBuilding(spark, definition).plan)
    }
    location.orNull
  }
}
