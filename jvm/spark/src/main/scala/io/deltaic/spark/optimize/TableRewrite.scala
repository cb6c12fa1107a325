package io.deltaic.spark.optimize

import scala.util.Try

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{ExpressionInternals, WriteInternals}
import org.apache.spark.sql.types.{BooleanType, StructType}
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, DeltaicException, DeltaicThrowable, LogPath}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.lineage.InputFiles
import io.deltaic.spark.commit.{CommitFiles, ReadSet}
import io.deltaic.spark.curve.RowOrder
import io.deltaic.spark.errors.DeltaicConcurrentModificationException
import io.deltaic.spark.rowlevel.VectorSettings
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.scan.files.{ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{ClusteringColumns, PartitionKey, TableSchema}
import io.deltaic.spark.util.Cancellation
import io.deltaic.spark.write.{NewFiles, WriteIntent, WriteTransaction}

/** Runs a [[RewriteRequest]]: selects files, copies their rows, and commits the new files. */
private[spark] final class TableRewrite(
    spark: SparkSession,
    log: DeltaLog,
    request: RewriteRequest
) extends RewrittenTable {
  private val logger = LoggerFactory.getLogger(getClass)
  private val startedAtMs = System.currentTimeMillis()
  private val snapshot: Snapshot = log.latest()
  private val schema = TableSchema.of(snapshot)
  private val predicate: Option[Expression] = request.predicate.map(resolved)

  override val settings: OptimizeSettings = request.settings(spark)
  override val clusteredBy: Seq[Seq[String]] = ClusteringColumns.logical(snapshot, schema)

  private val cancellation = Cancellation.of(request.command, log.table)

  /** Created first, since it is refused here if the table cannot be rewritten. */
  private val transaction = newTransaction()

  private def newTransaction() = new WriteTransaction(
    spark,
    log,
    Some(snapshot),
    WriteIntent(
      request.operation(predicate.map(toPrettySQL(_)), clusteredBy),
      mode = "rewrite",
      changesRows = false
    ).withOptions(RewriteRequest.options(settings))
  )

  private val order: Option[RowOrder] = request.order(this)

  /** Rows are clustered if they are ordered by the clustering columns. */
  private def clusters: Boolean = clusteredBy.nonEmpty && order.isDefined

  override def columns: StructType = schema.all

  override def clusterSelection: ClusterSelection =
    new ClusterSelection(log.table, schema, clusteredBy, settings, sessionZone(spark))

  override def withDroppedColumns(files: Seq[AddFile]): Set[String] =
    DroppedColumns.in(transaction, files)

  override def withOlderTypes(files: Seq[AddFile]): Set[String] = OlderTypes.in(transaction, files)

  /**
   * Commits in batches, if the session has set their size. If a batch fails, those before it stay committed.
   *
   * @return the metrics of the result
   */
  def run(): ObjectNode = {
    val considered = request.considered(spark, snapshot).getOrElse {
      SnapshotFiles(spark, log, snapshot, schema).select(ScanFilters(predicate.toSeq))
    }
    val groups = groupsOf(considered)
    val batches = FileGroup.batches(groups, settings, areOrdered = order.isDefined)
    val committed = batches.zipWithIndex.map { case (batch, i) =>
      // All read the same version, so that what others have committed since is checked for conflicts.
      rewritten(if (i == 0) transaction else newTransaction(), batch)
    }
    val removed = committed.flatMap(_.removes).map(_.restored)
    RewriteMetrics(
      startedAtMs,
      considered,
      groups.size,
      batches.size.max(1),
      removed,
      committed.flatMap(_.adds),
      orderMetrics(considered, removed, groups.size)
    ).json(spark, schema, transaction.copySpec)
  }

  private def orderMetrics(
      considered: Seq[AddFile],
      removed: Seq[AddFile],
      numGroups: Int
  ): Map[String, Any] =
    if (order.isEmpty) Map.empty
    else if (clusteredBy.isEmpty) RewriteMetrics.ofZOrder(considered, removed, numGroups)
    else Map("clusteringStats" -> clusterSelection.metrics(considered, removed, numGroups))

  /** @return what is committed */
  private def rewritten(
      transaction: WriteTransaction,
      groups: IndexedSeq[FileGroup]
  ): CommitFiles = {
    cancellation.check()
    val outputs = new FileRewrite(transaction, settings, order, transaction.schema).run(groups)
    val firstInputs = groups.scanLeft(0)(_ + _.files.size)
    val copies = outputs.map { case (output, add) =>
      val (first, files) = (firstInputs(output.group), groups(output.group).files)
      val lineage = output.lineage(first).map(_.tag)
        .orElse(Option.when(request.canBeTakenBack)(InputFiles(first, files.size).tag))
      ClusterTags.copied(add.copy(tags = add.tags ++ lineage), output.filesIn(groups))
    }
    val adds =
      if (clusters)
        outputs.map(_._1.group).zip(copies).groupMap(_._1)(_._2).toSeq.sortBy(_._1)
          .flatMap { case (_, ofGroup) => ClusterTags.marked(ofGroup, clusteredBy) }
      else copies
    val deletionTimestampMs = System.currentTimeMillis()
    val removes = groups.flatMap(_.files).map(_.remove(deletionTimestampMs, dataChange = false))
    committed(transaction, CommitFiles(removes, adds))
  }

  /**
   * Commits copied rows. If other commits have removed some of their files meanwhile, these are left out: their rows are
   * in other files already, or deleted.
   */
  private def committed(transaction: WriteTransaction, changes: CommitFiles): CommitFiles =
    try {
      transaction.commit(
        changes,
        NewFiles(changes.adds),
        ReadSet.nothing,
        RewriteMetrics.ofCommit(changes.adds, transaction.copySpec),
        // Only a compaction has lineage by which rows are found.
        rebaseSettings = VectorSettings.rebaseSettingsOfRelocation(transaction)
          .filter(order.isEmpty || _.lookup.isDefined)
      )
      transaction.committedFiles
    } catch {
      case e: Throwable =>
        val left = e match {
          case _: DeltaicConcurrentModificationException =>
            // If the table cannot be read, the conflict is the better error.
            Try(withoutRemovedFiles(changes)).toOption.flatten
          case _ => None
        }
        val kept = left.toSeq.flatMap(_.adds).map(_.path).toSet
        val lost = changes.adds.filterNot(add => kept(add.path))
        val hasFailed = transaction.abort(NewFiles(lost), tasksLost = false)
        left match {
          case Some(left) if hasFailed =>
            if (left.removes.isEmpty) left
            else committed(nextTransaction(transaction, left, e), left)
          case _ => throw e
        }
    }

  /** A transaction for what is left of a commit that has failed. Without one, the new files are deleted. */
  private def nextTransaction(
      failed: WriteTransaction,
      left: CommitFiles,
      failure: Throwable
  ): WriteTransaction =
    try newTransaction()
    catch {
      case e: Throwable =>
        failed.abort(NewFiles(left.adds), tasksLost = false)
        failure.addSuppressed(e)
        throw failure
    }

  /** @return none if no file is removed, or if it is not known where its rows are */
  private def withoutRemovedFiles(changes: CommitFiles): Option[CommitFiles] = {
    def canonical(path: String): String = LogPath.canonical(log.table, path)
    val ours = changes.removes.iterator.map(remove => canonical(remove.path)).toSet
    val left = log.withReadableFiles(log.latest())(
      _.adds.map(add => canonical(add.path)).filter(ours).toSet
    )
    val gone = ours -- left
    if (gone.isEmpty) None
    else {
      val parts = changes.withoutParts(remove => gone(canonical(remove.path)))
      if (parts.isDefined)
        logger.info(
          "Table {}: {} leaves out {} files that other commits have removed meanwhile, and the files compacted together " +
            "with them",
          log.table,
          request.command,
          gone.size
        )
      parts
    }
  }

  private def groupsOf(considered: IndexedSeq[AddFile]): IndexedSeq[FileGroup] = {
    val candidates = request.candidates(considered, this)
    val partitions = new PartitionKey(schema, sessionZone(spark))
    lazy val ratio = DecodedRatio.of(
      log.table,
      candidates.map(_.file),
      WriteInternals.hadoopConf(spark, Map.empty)
    )
    val byPartition = candidates.groupBy(candidate => partitions.of(candidate.file)).values
    val selected = byPartition.iterator
      .filter(ofPartition => ofPartition.size > 1 || ofPartition.head.isRequired)
      .map(RewriteCandidate.selected(_, settings, ratio).map(_.file))
      .filter(_.nonEmpty)
    FileGroup.ofPartitions(partitions, selected).flatMap { group =>
      // Each group becomes a cube.
      settings.targetCubeBytes.filter(_ => clusters).fold(Seq(group))(group.split)
    }
  }

  private def resolved(sql: String): Expression = {
    val condition =
      try ExpressionInternals.resolved(spark, sql, ExpressionInternals.attributes(schema.all))
      catch {
        // The message of an analysis error may end with the plan around the condition.
        case e: AnalysisException => throw refused(sql, e.getSimpleMessage, e)
        case e: IllegalArgumentException => throw refused(sql, e.getMessage, e)
      }
    val others = condition.references.toSeq.map(_.name).filterNot(schema.isPartition).distinct
    if (others.nonEmpty) {
      val partitionedBy =
        if (schema.partitionColumns.isEmpty) "has no partition columns"
        else s"is partitioned by ${schema.partitionColumns.mkString(", ")}"
      throw refused(sql, s"it references ${others.mkString(", ")}, and the table $partitionedBy")
    }
    if (condition.dataType != BooleanType)
      throw refused(sql, s"it is of type ${condition.dataType.sql}, not BOOLEAN")
    if (!condition.deterministic) throw refused(sql, "it is not deterministic")
    condition
  }

  private def refused(sql: String, reason: String, cause: Throwable = null): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_INVALID_PARTITION_PREDICATE",
      Map("table" -> log.table.toString, "predicate" -> sql, "reason" -> reason),
      cause
    )
}
