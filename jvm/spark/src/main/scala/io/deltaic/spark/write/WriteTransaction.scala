package io.deltaic.spark.write

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, WriteShims}
import org.apache.spark.sql.types.{StructField, StructType}
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, LogPath, RemoveFile}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.bridge._
import io.deltaic.spark.changes.ChangeColumns
import io.deltaic.spark.scan.{
  ClusteringColumns,
  ColumnMapping,
  ScanColumns,
  SchemaChecks,
  TableSchema
}

/**
 * What a write means to do, as its commit will record it.
 *
 * @param mode how it treats what is there: `append`, `overwrite`, `delete`, ...
 * @param schema the columns a new or replaced table is to have
 * @param constraints the conditions of the CHECK constraints a new or replaced table is to have, by name
 * @param clusterBy the columns a new or replaced table is to be clustered by
 * @param computed the generated columns that the query computes
 * @param options the writer's options, keys in lower case
 * @param joinsIfCreated whether a write that finds no table appends to one that appears meanwhile
 * @param evolved the table's columns with those that the rows bring along, if they may bring any
 * @param keepsDefinition whether the table's definition stays although the operation's name says otherwise
 * @param rowCondition what the rows must meet because the write replaces none but such, if it is checked
 * @param movesRows whether rows that were there before are written anew, and bring their ids along
 * @param measured what has been counted by the time of the commit, by the names of engine metrics
 */
private[spark] final case class WriteIntent(
    operation: String,
    operationParameters: Map[String, String],
    mode: String,
    schema: Option[StructType] = None,
    partitionBy: Option[Seq[String]] = None,
    properties: Map[String, String] = Map.empty,
    constraints: Map[String, String] = Map.empty,
    clusterBy: Option[Seq[Seq[String]]] = None,
    description: Option[String] = None,
    computed: Set[String] = Set.empty,
    options: Map[String, String] = Map.empty,
    joinsIfCreated: Boolean = false,
    evolved: Option[StructType] = None,
    keepsDefinition: Boolean = false,
    rowCondition: Option[Expression] = None,
    movesRows: Boolean = false,
    measured: () => Map[String, Long] = WriteIntent.nothingMeasured
)

private[spark] object WriteIntent {
  val nothingMeasured: () => Map[String, Long] = () => Map.empty
}

/** The files that a write has made, and that nothing needs if it fails. */
private[spark] final case class NewFiles(dataFiles: Seq[AddFile], vectorFiles: Seq[Path] = Nil)

private[spark] object NewFiles {
  val none: NewFiles = NewFiles(Nil)
}

/**
 * One write, from the question what it may do to the version it becomes. Creating it asks Python for
 * the plan, so a write that is refused, or that has no Python to decide it, fails before any data is
 * written.
 *
 * @param snapshot what the write is based on; none when it creates the table
 */
private[spark] final class WriteTransaction(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Option[Snapshot],
    stated: WriteIntent
) {

  private val sessionOptions = new SessionWriteOptions(spark, stated.options)
  private val intent = stated.copy(options = sessionOptions.all)

  val readVersion: Long = snapshot.fold(-1L)(_.version)
  private val logger = LoggerFactory.getLogger(getClass)
  private var prepared: Option[PreparedCommit] = None

  log.requireWritable()

  val plan: CommitPlan =
    new CommitPlan(CommitterReply.toQuestion(request)(committer.plan(spark, _)))

  val schema: TableSchema = TableSchema.of(log.table.toString, plan.protocol, plan.metadata)

  // The table may have such columns already.
  private val reserved = schema.stored.fieldNames.toSeq.filter(ScanColumns.isReserved)
  if (reserved.nonEmpty) {
    val known = snapshot.fold(Seq.empty[String])(TableSchema.of(_).stored.fieldNames.toSeq)
    SchemaChecks.requireNewNames(log.table.toString, reserved.diff(known))
  }

  /** Protocol § Clustered Table: files need statistics of these, by the names that files have. */
  private def clusteredBy: Seq[Seq[String]] = plan.domain(ClusteringColumns.Domain) match {
    case Some(configuration) => ClusteringColumns.physical(configuration)
    case None => snapshot.toSeq.flatMap(ClusteringColumns.physical(_))
  }

  /** Lost tasks' files are found by it, whatever they hold. */
  private val nameMark = DataWriteSpec.newNameMark()

  /** How this write's data files are laid out and described. */
  lazy val dataSpec: DataWriteSpec = specOf(if (intent.movesRows) keptOfRows else Nil)

  /** The same for files of rows that only move: they bring their ids along. */
  lazy val movedSpec: DataWriteSpec = if (intent.movesRows) dataSpec else specOf(keptOfRows)

  /** Columns in which moved rows keep what row tracking knows of them. */
  private def keptOfRows: Seq[StructField] =
    schema.rowTracking.fold(Seq.empty[StructField])(_.materialized)

  private def specOf(tracked: Seq[StructField]): DataWriteSpec = DataWriteSpec.forTable(
    spark,
    log.table.toString,
    schema.stored,
    schema.partitionColumns,
    plan.metadata.configuration,
    intent.options,
    columnMapping = schema.mapping != ColumnMapping.NoMapping,
    clusteredBy = clusteredBy,
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
    materializesPartitions = ParquetFormat.materializesPartitions(plan.protocol, plan.metadata),
    tags = ParquetFormat.tags(plan.protocol, plan.metadata),
    tracked = tracked,
    nameMark = nameMark
  )

  /** The same for its change data files. */
  lazy val changeSpec: DataWriteSpec =
    DataWriteSpec.forChanges(spark, dataSpec, ChangeColumns.changeTypeField, intent.options)

  /** What the jobs of a phase of the write are called where Spark lists jobs. */
  def jobs(phase: String): String = JobShims.name(intent.operation, phase, log.table.toString)

  def describing[A](phase: String)(body: => A): A =
    JobShims.described(spark, jobs(phase))(body)

  /** The same until the result is called, on this thread. */
  def describe(phase: String): () => Unit = JobShims.describe(spark, jobs(phase))

  /**
   * Makes the changes a version of the table. A write that an earlier one with the same `txnAppId` and
   * `txnVersion` has made already is not made again, and its files are deleted.
   *
   * @param identityMarks how far the rows take identity columns, by column
   * @param rowEnds given if the rows of files that are removed or changed were ended one by one
   * @return whether they are a version now
   */
  def commit(
      changes: FileChanges,
      written: NewFiles,
      readSet: ReadSet,
      engineMetrics: Map[String, Long] = Map.empty,
      identityMarks: Map[String, Long] = Map.empty,
      rowEnds: Option[RowEnds] = None
  ): Boolean = {
    val skipped = plan.alreadyApplied || decide(
      changes,
      readSet,
      engineMetrics,
      identityMarks,
      rowEnds,
      written.vectorFiles
    )
    sessionOptions.used()
    if (skipped) abort(written, tasksLost = false)
    !skipped
  }

  /** Commits a version without rows: all files that the table has are removed. */
  def commitWithoutRows(engineMetrics: => Map[String, Long] = Map.empty): Unit = {
    val now = System.currentTimeMillis()
    val removes = snapshot.fold(Vector.empty[RemoveFile]) { s =>
      log.withReadableFiles(s)(_.adds.map(_.remove(now)).toVector)
    }
    commit(FileChanges(removes), NewFiles.none, ReadSet.everything, engineMetrics)
  }

  /** @return whether the commit turned out to have been made before */
  private def decide(
      changes: FileChanges,
      readSet: ReadSet,
      engineMetrics: Map[String, Long],
      identityMarks: Map[String, Long],
      rowEnds: Option[RowEnds],
      vectorFiles: Seq[Path]
  ): Boolean = {
    val commit = new PreparedCommit(
      CommitRequest(
        log,
        readVersion,
        intent.operation,
        intent.operationParameters,
        plan.json,
        plan.isBlindAppend && readSet.isEmpty,
        intent.options,
        changes,
        readSet,
        metrics(engineMetrics, intent.measured()),
        identityMarks,
        identityMarks.keySet.filter(mayBeNumbered),
        rowEnds,
        vectorFiles,
        snapshot.flatMap(_.commitFile)
      ),
      CommittedVersion.tell(spark, log.table, _)
    )
    prepared = Some(commit)
    val told = Told.beforeCommit(spark, commit)
    try
      CommitterReply.toQuestion(told)(committer.commit(spark, commit, _))
        .path("skipped").asBoolean(false)
    catch {
      // The version exists: what failed came after it and must not undo the write.
      case e: Exception if commit.committedVersion.isDefined =>
        logger.warn(
          s"${log.table}: committed version ${commit.committedVersion.get}, then failed",
          e
        )
        false
    }
  }

  /** Storing the source of a MERGE is part of the statement, too, and comes before the write begins. */
  private def metrics(own: Map[String, Long], measured: Map[String, Long]): Map[String, Long] = {
    val storingMs = measured.getOrElse("materializeSourceTimeMs", 0L)
    (own ++ measured).updatedWith("executionTimeMs")(_.map(_ + storingMs))
  }

  /** Whether rows of this write may hold values that the table gave, and not the user alone. */
  private def mayBeNumbered(column: String): Boolean = {
    val isStated = schema.stored.fields.filter(_.name == column)
      .flatMap(IdentityColumn.of).exists(_.allowExplicitInsert) && !intent.computed(column)
    // Rows that a MERGE inserts do not tell which values they brought along.
    !isStated || intent.operation == "MERGE"
  }

  /**
   * Deletes what a write that failed for certain has written.
   *
   * @param tasksLost whether there are tasks that reported nothing
   */
  def abort(written: NewFiles, tasksLost: Boolean): Unit =
    // Once it is abandoned, a commit that Python may still be deciding on can no longer be made.
    if (prepared.forall(_.abandon())) {
      val files = written.dataFiles.map(f => LogPath.toAbsolute(log.table, f.path)) ++
        (written.vectorFiles ++ prepared.toSeq.flatMap(_.ownVectorFiles)).distinct
      discard(files)
      if (tasksLost)
        new StrayFiles(log.table, configuration).delete(DataWriteSpec.isNamed(nameMark, _))
    }

  /** Deletes files that nothing needs. */
  def discard(files: Seq[Path]): Unit = UselessFiles.delete(log.table, files, configuration)

  private def configuration: Configuration = WriteShims.hadoopConf(spark, intent.options)

  private def committer: Committer = Committers.current(spark)

  private def request: ObjectNode = Json
    .obj(
      "table" -> log.table.toString,
      "operation" -> intent.operation,
      "operationParameters" -> intent.operationParameters,
      "readVersion" -> readVersion,
      "mode" -> intent.mode,
      "schema" -> intent.schema.map(_.json),
      "partitionBy" -> intent.partitionBy,
      "properties" -> intent.properties,
      "constraints" -> intent.constraints,
      "clusterBy" -> intent.clusterBy,
      "description" -> intent.description,
      "options" -> intent.options,
      "joinsIfCreated" -> intent.joinsIfCreated,
      "evolvedSchema" -> intent.evolved.map(_.json),
      "keepsDefinition" -> intent.keepsDefinition,
      "told" -> Told.beforeWrite(spark, snapshot, intent.options.get("txnappid").contains)
    )
}
