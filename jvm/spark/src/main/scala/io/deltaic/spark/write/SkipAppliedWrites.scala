package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.LeafV2CommandExec
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** A write that counts once under its progress (Protocol § Transaction Identifiers). */
private[spark] trait CountsOnce {

  /** Whether there is nothing to do, because an earlier write has done it. */
  def isApplied: Boolean

  /** Says that the progress was used, as the write would. */
  def skip(): Unit
}

/**
 * Plans nothing for a write that an earlier one with the same `txnAppId` and `txnVersion` has made: its
 * query is not run. One that another writer makes in the meantime is found when it commits.
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
