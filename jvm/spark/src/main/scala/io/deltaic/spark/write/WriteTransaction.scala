package io.deltaic.spark.write

import java.util.concurrent.TimeUnit

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.sql.types.{StructField, StructType}
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.changes.ChangeColumns
import io.deltaic.spark.commit.{
  CommitFiles,
  CommitPlan,
  CommitRequest,
  Committer,
  CommitterReply,
  Committers,
  IdentityValues,
  LostTaskFiles,
  Message,
  OperationInfo,
  OrphanFiles,
  PostCommit,
  PrefetchedState,
  PreparedCommit,
  ReadSet,
  RebaseSettings,
  RequestedDefinition,
  TableRead
}
import io.deltaic.spark.metrics.CommittedWrite
import io.deltaic.spark.schema.{
  ClusteringColumns,
  ColumnMapping,
  ConditionResolver,
  IdentityColumn,
  ScanColumns,
  SchemaChecks,
  TableConditions,
  TableSchema
}
import io.deltaic.spark.util.{Cancellation, SessionSettings}
import io.deltaic.spark.write.files.{DataWriteSpec, ParquetFormat, WrittenTable}

/**
 * The specification of a write, as its commit records it.
 *
 * @param mode how it treats existing rows: `append`, `overwrite`, `delete`, ...
 * @param definition what it specifies of a new or replaced table
 * @param computed the generated columns that the query computes
 * @param appendsIfCreatedConcurrently whether a write that finds no table appends to one that is created concurrently
 * @param evolved the table's columns with those that the rows add, if schema evolution is enabled
 * @param keepsDefinition whether the table's definition is retained although the operation's name implies otherwise
 * @param rowCondition the condition of the replaced rows, if new rows must satisfy it
 * @param copiesRows whether existing rows are copied to new files, with their row IDs
 * @param changesRows whether it is a write, and not a command that only rewrites files
 * @param measured metrics counted before the commit, by the names of engine metrics
 */
private[spark] final case class WriteIntent(
    operation: OperationInfo,
    mode: String,
    definition: RequestedDefinition = RequestedDefinition(),
    computed: Set[String] = Set.empty,
    appendsIfCreatedConcurrently: Boolean = false,
    evolved: Option[StructType] = None,
    keepsDefinition: Boolean = false,
    rowCondition: Option[Expression] = None,
    copiesRows: Boolean = false,
    changesRows: Boolean = true,
    measured: () => Map[String, Long] = WriteIntent.nothingMeasured
) {
  def withParameters(parameters: (String, String)*): WriteIntent =
    copy(operation = operation.copy(parameters = operation.parameters ++ parameters))

  def withOptions(options: Map[String, String]): WriteIntent =
    copy(operation = operation.copy(options = options))
}

private[spark] object WriteIntent {
  val nothingMeasured: () => Map[String, Long] = () => Map.empty
}

/** The files that a write has written, which are deleted if it fails. */
private[spark] final case class NewFiles(dataFiles: Seq[AddFile], vectorFiles: Seq[Path] = Nil)

private[spark] object NewFiles {
  val none: NewFiles = NewFiles(Nil)
}

/**
 * One write, from its plan to its commit. Its creation requests the plan from
 * Python, so that a write that is refused, or for which Python is unavailable, fails before any data is
 * written.
 *
 * @param snapshot the version that the write is based on; none if it creates the table
 */
private[spark] final class WriteTransaction(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Option[Snapshot],
    specified: WriteIntent
) {

  private val cancellation = Cancellation.of(specified.operation.name, log.table)

  private val sessionOptions =
    new SessionWriteOptions(spark, specified.operation.options, specified.changesRows)
  private val intent = specified.withOptions(sessionOptions.all)

  val readVersion: Long = snapshot.fold(-1L)(_.version)
  private val logger = LoggerFactory.getLogger(getClass)
  private var prepared: Option[PreparedCommit] = None

  log.requireWritable()

  val plan: CommitPlan =
    new CommitPlan(CommitterReply.toRequest(request)(committer.plan(spark, _)))

  val schema: TableSchema = TableSchema.of(log.table.toString, plan.protocol, plan.metadata)

  // An existing table may already have such columns.
  private val reserved = schema.stored.fieldNames.toSeq.filter(ScanColumns.isReserved)
  if (reserved.nonEmpty) {
    val existing = snapshot.fold(Seq.empty[String])(TableSchema.of(_).stored.fieldNames.toSeq)
    SchemaChecks.requireNewNames(log.table.toString, reserved.diff(existing))
  }

  /** Protocol § Clustered Table: files need statistics of these columns; by their physical names. */
  private def clusteredBy: Seq[Seq[String]] = plan.domain(ClusteringColumns.Domain) match {
    case Some(configuration) => ClusteringColumns.physical(configuration)
    case None => snapshot.toSeq.flatMap(ClusteringColumns.physical(_))
  }

  /** The columns of a clustered table by which each task orders its rows; none if they stay in their order. */
  def taskClusteringColumns: Seq[Seq[String]] =
    if (SessionSettings.isOn(spark, "clusteredWrite.enabled", default = true))
      ClusteringColumns.logical(clusteredBy, schema)
    else Nil

  /** Files of lost tasks are found by it, whatever their kind. */
  private val writeUuidPrefix = DataWriteSpec.newUuidPrefix()

  /** The spec of this write's data files. */
  lazy val dataSpec: DataWriteSpec = specOf(if (intent.copiesRows) trackingColumns else Nil)

  /** The spec of files with copied rows, which keep their row IDs. */
  lazy val copySpec: DataWriteSpec = if (intent.copiesRows) dataSpec else specOf(trackingColumns)

  /** The materialized row tracking columns of copied rows. */
  private def trackingColumns: Seq[StructField] =
    schema.rowTracking.fold(Seq.empty[StructField]) { tracking =>
      if (ParquetFormat.isReadAsIcebergV3(plan.protocol, plan.metadata))
        tracking.materializedWithFieldIds
      else tracking.materialized
    }

  private def specOf(rowTracking: Seq[StructField]): DataWriteSpec = DataWriteSpec.forTable(
    spark,
    WrittenTable(
      log.table.toString,
      schema.stored,
      schema.partitionColumns,
      plan.metadata.configuration,
      columnMapping = schema.mapping != ColumnMapping.NoMapping,
      materializesPartitions = ParquetFormat.materializesPartitions(plan.protocol, plan.metadata),
      shredsVariants = ParquetFormat.shredsVariants(plan.protocol, plan.metadata),
      clusteredBy = clusteredBy,
      tags = ParquetFormat.tags(plan.protocol, plan.metadata)
    ),
    intent.operation.options,
    checks =
      TableConditions.of(
        spark,
        log.table.toString,
        plan.protocol,
        plan.metadata,
        schema.stored,
        intent.computed
      ) ++ intent.rowCondition.map {
        new ConditionResolver(spark, log.table.toString, schema.stored, schema.partitionColumns)
          .replaced(_)
      },
    rowTracking = rowTracking,
    writeUuidPrefix = writeUuidPrefix
  )

  /** The spec of its change data files. */
  lazy val changeSpec: DataWriteSpec =
    DataWriteSpec.forChanges(
      spark,
      dataSpec,
      ChangeColumns.changeTypeField,
      intent.operation.options
    )

  /** The description of the Spark jobs of a phase of the write. */
  def jobs(phase: String): String =
    JobInternals.name(intent.operation.name, phase, log.table.toString)

  def describing[A](phase: String)(body: => A): A =
    JobInternals.described(spark, jobs(phase))(body)

  /** Sets the description on this thread until the result is called. */
  def describe(phase: String): () => Unit = JobInternals.describe(spark, jobs(phase))

  /**
   * Commits the changes as a version of the table. If an earlier write was committed with the same `txnAppId` and
   * `txnVersion`, this write is skipped, and its files are deleted.
   *
   * @param identityHighWaterMarks the high-water marks of identity columns that the rows reach, by column
   * @param rebaseSettings set if single rows of the removed or changed files were deleted
   * @return false if the write was skipped
   */
  def commit(
      changes: CommitFiles,
      written: NewFiles,
      readSet: ReadSet,
      engineMetrics: Map[String, Long] = Map.empty,
      identityHighWaterMarks: Map[String, Long] = Map.empty,
      rebaseSettings: Option[RebaseSettings] = None
  ): Boolean = {
    cancellation.check()
    val skipped = plan.alreadyCommitted || commitInPython(
      changes,
      readSet,
      engineMetrics,
      identityHighWaterMarks,
      rebaseSettings,
      written.vectorFiles
    )
    sessionOptions.used()
    if (skipped) abort(written, tasksLost = false)
    !skipped
  }

  /** What the commit did; none if nothing was committed. */
  def committed: Option[CommittedWrite] =
    prepared.filter(_.committedVersion.isDefined).map { commit =>
      val CommitFiles(removes, adds, _) = commit.changes
      CommittedWrite(adds, removes, commit.attempts, commitMillis)
    }

  @volatile private var commitMillis = 0L

  /** The files of the commit, as it was rebased onto others; empty if nothing was committed. */
  def committedFiles: CommitFiles = prepared.fold(CommitFiles())(_.changes)

  /** Commits a version without rows: all files of the table are removed. */
  def commitWithoutRows(engineMetrics: => Map[String, Long] = Map.empty): Unit = {
    val now = System.currentTimeMillis()
    val removes = snapshot.fold(Vector.empty[RemoveFile]) { s =>
      log.withReadableFiles(s)(_.adds.map(_.remove(now)).toVector)
    }
    commit(CommitFiles(removes), NewFiles.none, ReadSet.everything, engineMetrics)
  }

  /** @return whether the commit was skipped as already applied */
  private def commitInPython(
      changes: CommitFiles,
      readSet: ReadSet,
      engineMetrics: Map[String, Long],
      identityHighWaterMarks: Map[String, Long],
      rebaseSettings: Option[RebaseSettings],
      vectorFiles: Seq[Path]
  ): Boolean = {
    val commit = new PreparedCommit(
      CommitRequest(
        log,
        TableRead(readVersion, readSet, snapshot.flatMap(_.commitFile)),
        intent.operation,
        plan.json,
        plan.isBlindAppend && readSet.isEmpty,
        changes,
        metrics(engineMetrics, intent.measured()),
        IdentityValues(
          identityHighWaterMarks,
          identityHighWaterMarks.keySet.filter(mayBeGenerated)
        ),
        rebaseSettings,
        vectorFiles
      ),
      PostCommit.updateSession(spark, log.table, _)
    )
    prepared = Some(commit)
    val prefetched = PrefetchedState.beforeCommit(spark, commit)
    val startedAtNanos = System.nanoTime
    try
      CommitterReply.toRequest(prefetched)(committer.commit(spark, commit, _))
        .path("skipped").asBoolean(false)
    catch {
      // The version exists: a later failure must not undo the write.
      case e: Exception if commit.committedVersion.isDefined =>
        logger.warn(
          s"${log.table}: committed version ${commit.committedVersion.get}, then failed",
          e
        )
        false
    } finally commitMillis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime - startedAtNanos)
  }

  /** The materialization of a MERGE source is part of the statement, and precedes the write. */
  private def metrics(own: Map[String, Long], measured: Map[String, Long]): Map[String, Long] = {
    val storingMs = measured.getOrElse("materializeSourceTimeMs", 0L)
    (own ++ measured).updatedWith("executionTimeMs")(_.map(_ + storingMs))
  }

  /** Whether rows of this write may hold generated values of an identity column, and not only the user's. */
  private def mayBeGenerated(column: String): Boolean = {
    val isExplicit = schema.stored.fields.filter(_.name == column)
      .flatMap(IdentityColumn.of).exists(_.allowExplicitInsert) && !intent.computed(column)
    // For rows that a MERGE inserts, it is not known which values are explicit.
    !isExplicit || intent.operation.name == "MERGE"
  }

  /**
   * Deletes the files of a write that has certainly failed.
   *
   * @param tasksLost whether there are tasks without a report
   * @return false if it may be committed, in which case nothing is deleted
   */
  def abort(written: NewFiles, tasksLost: Boolean): Boolean = {
    // After `abandon`, a commit that Python may still be processing can no longer succeed.
    val hasFailed = prepared.forall(_.abandon())
    if (hasFailed) {
      val files = written.dataFiles.map(f => LogPath.toAbsolute(log.table, f.path)) ++
        (written.vectorFiles ++ prepared.toSeq.flatMap(_.ownVectorFiles)).distinct
      discard(files)
      if (tasksLost)
        new LostTaskFiles(
          log.table,
          configuration
        ).delete(DataWriteSpec.isNamed(writeUuidPrefix, _))
    }
    hasFailed
  }

  /** Deletes files that are no longer needed. */
  def discard(files: Seq[Path]): Unit = OrphanFiles.delete(log.table, files, configuration)

  private def configuration: Configuration =
    WriteInternals.hadoopConf(spark, intent.operation.options)

  private def committer: Committer = Committers.current(spark)

  private def request: ObjectNode = Message.of("WriteRequest")(
    "table" -> log.table.toString,
    "readVersion" -> readVersion,
    "operation" -> intent.operation.json,
    "mode" -> intent.mode,
    "definition" -> intent.definition.json,
    "evolvedSchema" -> intent.evolved.map(_.json),
    "keepsDefinition" -> intent.keepsDefinition,
    "appendsIfCreatedConcurrently" -> intent.appendsIfCreatedConcurrently,
    "prefetched" -> PrefetchedState.beforeWrite(
      spark,
      snapshot,
      intent.operation.options.get("txnappid").contains
    )
  )
}
