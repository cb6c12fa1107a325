package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.write.ReplaceWhere

/**
 * Stands around the rows of a write until its table has the columns that it will have. It keeps the
 * write unresolved: Spark would otherwise fit the rows to the present columns, or fail to, in the same
 * pass that resolves the table, before any rule of an extension has seen it.
 */
private[spark] final case class PendingRows(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): PendingRows =
    copy(child = newChild)
}

/**
 * Marks the writes of DataFrames before anything is resolved; see [[EvolveWrittenColumns]], which takes
 * the mark off. An INSERT is no write yet, and waits by itself.
 */
private[spark] final case class MarkWrites(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case write: AppendData if isOpen(write) => marked(write)
    case write: OverwriteByExpression if isOpen(write) => marked(replacing(write))
    case write: OverwritePartitionsDynamic if isOpen(write) => marked(replacing(write))
  }

  private def isOpen(write: V2WriteCommand): Boolean =
    !write.query.isInstanceOf[PendingRows] && (write.table match {
      case _: UnresolvedRelation => true
      case ExtractV2Table(_: DeltaicTable) => true
      case _ => false
    })

  private def marked(write: V2WriteCommand): LogicalPlan =
    write.withNewQuery(PendingRows(write.query))

  /** `insertInto` with the option by which a writer says what it replaces. */
  private def replacing(write: OverwriteByExpression): V2WriteCommand =
    condition(write, write.writeOptions).filter(_ => write.deleteExpr == Literal.TrueLiteral)
      .fold(write)(ending => replacing(write, ending))

  private def replacing(write: OverwritePartitionsDynamic): V2WriteCommand =
    condition(write, write.writeOptions).fold[V2WriteCommand](write) { ending =>
      val overwrite = OverwriteByExpression(
        write.table,
        ending,
        write.query,
        write.writeOptions,
        write.isByName,
        write.withSchemaEvolution
      )
      replacing(overwrite, ending)
    }

  /** A condition that is always true is none. */
  private def replacing(write: OverwriteByExpression, ending: Expression): OverwriteByExpression =
    if (ending != Literal.TrueLiteral) write.copy(deleteExpr = ending)
    else {
      val others = write.writeOptions.filterNot(_._1.equalsIgnoreCase(ReplaceWhere.Key))
      write.copy(deleteExpr = ending, writeOptions = others)
    }

  private def condition(
      write: V2WriteCommand,
      options: Map[String, String]
  ): Option[Expression] = write.table match {
    case ExtractV2Table(table: DeltaicTable) =>
      CaseInsensitiveMap(options).get(ReplaceWhere.Key)
        .map(ReplaceWhere.parse(spark, table.log.table.toString, _))
    case _ => None
  }
}
