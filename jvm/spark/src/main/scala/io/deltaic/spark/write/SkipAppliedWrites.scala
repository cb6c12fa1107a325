package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.LeafV2CommandExec
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** An idempotent write (Protocol § Transaction Identifiers). */
private[spark] trait CountsOnce {

  /** Whether an earlier write has already been committed with the same transaction identifier. */
  def isApplied: Boolean

  /** Marks the transaction identifier as used, as the write would. */
  def skip(): Unit
}

/**
 * Skips a write if an earlier one has been committed with the same `txnAppId` and `txnVersion`: its
 * query is not run. A concurrent write with the same identifier is detected at the commit.
 */
private[spark] object SkipAppliedWrites extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case command: V2WriteCommand =>
      RecordReads.writeOf(command).toSeq.collect {
        case write: CountsOnce if write.isApplied => SkippedWriteExec(write)
      }
    case _ => Nil
  }
}

private[spark] final case class SkippedWriteExec(write: CountsOnce) extends LeafV2CommandExec {
  override def output: Seq[Attribute] = Nil

  override protected def run(): Seq[InternalRow] = {
    write.skip()
    Nil
  }
}
