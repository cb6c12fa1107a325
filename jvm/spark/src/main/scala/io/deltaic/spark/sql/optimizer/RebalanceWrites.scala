package io.deltaic.spark.sql.optimizer

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.MergeRows.{Delete, Discard, Keep}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.catalyst.util.RowDeltaUtils.DELETE_OPERATION
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.{OptimizedWrite, WriteTargets}

/**
 * Shuffles the rows of a write before they are written, so that many small tasks write few large
 * files: rows of a table partition are clustered, and adaptive execution coalesces and splits the
 * shuffle partitions.
 *
 * {{{
 *   AppendData t          =>     AppendData t
 *   +- query                     +- RebalancePartitions p
 *                                   +- query
 * }}}
 *
 *   - Any write with optimized writes enabled, to files of the configured size. Without
 *     adaptive execution, as in a stream with state, the rows are [[OptimizedWriteRows]].
 *   - Every MERGE into a partitioned table: after its join each task has rows of all
 *     partitions, and would write a file to each. Rows that are only deleted are distributed by
 *     their file.
 *
 * A DELETE and a MERGE that only deletes write no rows, and have no shuffle.
 */
private[spark] final case class RebalanceWrites(spark: SparkSession) extends Rule[LogicalPlan] {
  import RebalanceWrites._

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transform {
      case write @ AppendData(Target(table, relation), rows, options, _, _, None, _) =>
        write.copy(query = written(rows, table, relation, options))
      case write @ OverwriteByExpression(
            Target(table, relation),
            _,
            rows,
            options,
            _,
            _,
            None,
            _
          ) => write.copy(query = written(rows, table, relation, options))
      case write @ OverwritePartitionsDynamic(Target(table, relation), rows, options, _, _, None) =>
        write.copy(query = written(rows, table, relation, options))
      case write @ WriteToMicroBatchDataSource(
            Target(table, relation),
            rows,
            _,
            options,
            _,
            Some(_)
          ) => write.copy(query = written(rows, table, relation, options))
      case merge @ InsertOnlyMerge(MergedInto(table, relation), rows, None, _) =>
        val target = table.writeTarget
        val shuffle = shuffleOfMerge(target.properties, target.partitionColumns)
        merge.copy(query =
          shuffled(rows, shuffle, columns(target.partitionColumns, relation, rows))
        )
      case change @ WriteDelta(_, _, rows, _, _, _, None) =>
        change.operation match {
          case own: RowLevelChange => change.copy(query = changed(rows, own, change))
          case _ => change
        }
    }

  private def written(
      rows: LogicalPlan,
      table: WriteTargets,
      relation: DataSourceV2Relation,
      options: Map[String, String]
  ): LogicalPlan = {
    val target = table.writeTarget
    val ofWrite = CaseInsensitiveMap(options)
    def option(name: String): Option[String] =
      ofWrite.get(name).orElse(Option(relation.options.get(name)))
    val shuffle = optimized(target.properties, option)
    shuffled(rows, shuffle, columns(target.partitionColumns, relation, rows))
  }

  private def changed(rows: LogicalPlan, change: RowLevelChange, write: WriteDelta): LogicalPlan = {
    val properties = change.snapshot.metadata.configuration
    def partitions: Seq[Attribute] = for {
      row <- write.projections.rowProjection.toSeq
      column <- change.partitionColumns
    } yield rows.output(row.colOrdinals(row.schema.fieldIndex(column)))
    change.command match {
      case Command.DELETE => rows
      case Command.UPDATE => shuffled(rows, optimized(properties, _ => None), partitions)
      case Command.MERGE if !writesRows(rows) => rows
      case Command.MERGE =>
        val file = rows.output(write.projections.rowIdProjection.colOrdinals.head)
        val isDeleted = EqualTo(rows.output.head, Literal(DELETE_OPERATION))
        val deletedIn = If(isDeleted, file, Literal(null, file.dataType))
        val by = if (change.partitionColumns.isEmpty) Nil else partitions :+ deletedIn
        shuffled(rows, shuffleOfMerge(properties, change.partitionColumns), by)
    }
  }

  /** Whether a MERGE does more than delete. */
  private def writesRows(rows: LogicalPlan): Boolean = rows.exists {
    case merge: MergeRows =>
      merge.instructions.exists {
        case Keep(Delete, _, _) | Discard(_) => false
        case _ => true
      }
    case _ => false
  }

  private def optimized(
      properties: Map[String, String],
      option: String => Option[String]
  ): Option[Shuffle] =
    Option.when(OptimizedWrite.isEnabled(spark, properties, option))(
      Shuffle(Some(OptimizedWrite.fileSizeBytes(spark)))
    )

  private def shuffleOfMerge(
      properties: Map[String, String],
      partitionColumns: Seq[String]
  ): Option[Shuffle] =
    optimized(properties, _ => None).orElse(Option.when(
      partitionColumns.nonEmpty && SessionSettings.isOn(spark, ByPartition, default = true)
    )(Shuffle(None)))

  private def shuffled(
      rows: LogicalPlan,
      shuffle: Option[Shuffle],
      by: => Seq[Expression]
  ): LogicalPlan = (rows, shuffle) match {
    case (_: RebalancePartitions | _: OptimizedWriteRows, _) | (_, None) => rows
    case (_, Some(Shuffle(Some(bytes)))) if !spark.sessionState.conf.adaptiveExecutionEnabled =>
      OptimizedWriteRows(by, rows, bytes)
    case (_, Some(Shuffle(fileSizeBytes))) =>
      RebalancePartitions(by, rows, optAdvisoryPartitionSize = fileSizeBytes)
  }

  /** The columns of the rows for these columns of the table: at this point, rows have its columns in its order. */
  private def columns(
      names: Seq[String],
      relation: DataSourceV2Relation,
      rows: LogicalPlan
  ): Seq[Attribute] = for {
    name <- names
    // The write itself refuses to partition by a column that does not exist.
    at = relation.output.indexWhere(_.name == name) if at >= 0
  } yield rows.output(at)
}

private[spark] object RebalanceWrites {
  private val ByPartition = "merge.repartitionBeforeWrite.enabled"

  /** @param fileSizeBytes the bytes of the shuffle for one file; Spark's advisory size if none */
  private final case class Shuffle(fileSizeBytes: Option[Long])

  private object Target {
    def unapply(plan: LogicalPlan): Option[(WriteTargets, DataSourceV2Relation)] = plan match {
      case relation @ ExtractV2Table(table: WriteTargets) => Some((table, relation))
      case _ => None
    }
  }

  private object MergedInto {
    def unapply(plan: LogicalPlan): Option[(WriteTargets, DataSourceV2Relation)] =
      EliminateSubqueryAliases(plan) match {
        case relation @ ExtractV2Table(target: MergeTarget) => Some((target.table, relation))
        case relation @ ExtractV2Table(table: DeltaicTable) => Some((table, relation))
        case _ => None
      }
  }
}
