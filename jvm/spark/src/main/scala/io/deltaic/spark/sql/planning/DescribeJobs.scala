package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.write.Write
import org.apache.spark.sql.deltaic.JobInternals
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}

import io.deltaic.spark.commit.reads.ReadRecordingWrite

/**
 * Sets the description of the Spark jobs of a DELETE, UPDATE or MERGE that shuffle and broadcast. They
 * run before Spark calls the write.
 *
 * {{{
 *   WriteDeltaExec          DescribedChangeExec
 *   +- query          =>    +- WriteDeltaExec
 *                              +- query
 * }}}
 */
private[spark] object DescribeJobs extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case command: V2WriteCommand if command.getTagValue(Described).isEmpty =>
      descriptionOf(command).toSeq.map { case (operation, description) =>
        val marked = command.withNewQuery(command.query)
        marked.setTagValue(Described, ())
        DescribedChangeExec(planLater(marked), operation, description)
      }
    case _ => Nil
  }

  private def descriptionOf(command: V2WriteCommand): Option[(String, String)] = command match {
    case change: WriteDelta => described(change.operation.command.toString, change.write)
    case merge: InsertOnlyMerge => described("MERGE", merge.write)
    case _ => None
  }

  private def described(operation: String, write: Option[Write]): Option[(String, String)] =
    write.collect { case own: ReadRecordingWrite =>
      operation -> JobInternals.name(operation, "find and write the rows", own.log.table.toString)
    }

  /** Marks a command that is already inside of a [[DescribedChangeExec]]. */
  private val Described = TreeNodeTag[Unit]("deltaic.jobsAreDescribed")
}

/** @param operation DELETE, UPDATE or MERGE: the name of the node in Spark's plans */
private[spark] final case class DescribedChangeExec(
    child: SparkPlan,
    operation: String,
    description: String
) extends V2CommandExec
    with UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def nodeName: String = operation

  override protected def run(): Seq[InternalRow] =
    JobInternals.described(session, description)(child.executeCollect().toSeq)

  override protected def withNewChildInternal(newChild: SparkPlan): DescribedChangeExec =
    copy(child = newChild)
}
