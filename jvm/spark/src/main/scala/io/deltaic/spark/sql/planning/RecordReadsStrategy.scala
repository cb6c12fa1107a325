package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.deltaic.BatchOfStream
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.spark.commit.reads.{MergeReadPredicate, ReadRecordingWrite, RecordedReads}
import io.deltaic.spark.scan.{MetadataOnlyScan, TableScan}

/**
 * Records in a write what its query reads, including subqueries: `INSERT INTO t SELECT ... FROM t`, or an
 * insert-only MERGE, which is an append, may conflict with concurrent commits.
 *
 * It is a planner strategy that plans nothing. Only at this point do all scans have their filters, and only
 * the planner sees the write and its query together.
 */
private[spark] object RecordReadsStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case command: V2WriteCommand =>
        val query = command.query
        ReadRecordingWrite.of(command).foreach(
          _.record(RecordedReads(
            scans(query),
            changesRowsAlone(query),
            MergeReadPredicate.in(command)
          ))
        )
      case BatchOfStream(_, query) =>
        ReadRecordingWrite.of(plan).foreach(
          _.record(RecordedReads(scans(query), resultPerRow = true))
        )
      case _ => ()
    }
    Nil
  }

  /**
   * True for a DELETE or UPDATE, and for a MERGE, unless it inserts source rows without a match and leaves
   * some matching rows unchanged: then such a row of the table prevents an insert.
   */
  private def changesRowsAlone(query: LogicalPlan): Boolean =
    query.collect { case merge: MergeRows => merge }.forall { merge =>
      merge.notMatchedInstructions.isEmpty ||
      merge.matchedInstructions.exists(_.condition == Literal.TrueLiteral)
    }

  /**
   * The scans whose rows affect the result. Spark evaluates the condition of an UPDATE or MERGE a second time, to
   * prune files at run time; the scans of that do not affect the result.
   */
  private def scans(query: LogicalPlan): Seq[TableScan] =
    query.transformAllExpressionsWithSubqueries { case _: DynamicPruning => Literal.TrueLiteral }
      .collectWithSubqueries { case relation: DataSourceV2ScanRelation => relation.scan }
      .collect {
        case scan: TableScan => scan
        case metadataOnly: MetadataOnlyScan => metadataOnly.replaced
      }
}
