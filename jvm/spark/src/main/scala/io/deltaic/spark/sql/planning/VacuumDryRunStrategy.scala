package io.deltaic.spark.sql.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.sql.command.VacuumDryRun
import io.deltaic.spark.vacuum.ShownFiles

/** Plans VACUUM with DRY RUN, and queries of its result, which [[ReadShownFiles]] has found. */
private[spark] object VacuumDryRunStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ShownFilesRelation(files, output) => ShownFilesExec(files, output) :: Nil
    case command: VacuumDryRun => VacuumDryRunExec(command, command.output) :: Nil
    case _ => Nil
  }
}

/** Finds the files, once. */
private[spark] final case class VacuumDryRunExec(
    command: VacuumDryRun,
    override val output: Seq[Attribute]
) extends LeafExecNode {
  override def nodeName: String = "VacuumDryRun"

  lazy val files: ShownFiles = command.find(session)

  override def executeCollect(): Array[InternalRow] = files.rows

  override protected def doExecute(): RDD[InternalRow] = ShownFilesExec(files, output).execute()
}

/** The rows that a DRY RUN has found. */
private[spark] final case class ShownFilesExec(
    @transient files: ShownFiles,
    override val output: Seq[Attribute]
) extends LeafExecNode {
  override def nodeName: String = "ShownFiles"

  override def executeTake(limit: Int): Array[InternalRow] = rows(files.all.take(limit)).toArray

  override def executeToIterator(): Iterator[InternalRow] = rows(files.all)

  override protected def doExecute(): RDD[InternalRow] = {
    val columns = output
    files.rdd(sparkContext).mapPartitions(ShownFilesExec.rows(columns, _))
  }

  private def rows(paths: Iterator[String]): Iterator[InternalRow] =
    ShownFilesExec.rows(output, paths).map(_.copy())
}

private object ShownFilesExec {
  private def rows(output: Seq[Attribute], paths: Iterator[String]): Iterator[InternalRow] = {
    val project = UnsafeProjection.create(output, output)
    paths.map(path => project(InternalRow(UTF8String.fromString(path))))
  }
}
