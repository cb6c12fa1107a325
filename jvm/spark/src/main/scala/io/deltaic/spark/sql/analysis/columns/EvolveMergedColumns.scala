package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.SQLConfHelper
import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.types.{StructField, StructType}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.definition.ColumnDefinitions
import io.deltaic.spark.catalog.target.{Evolution, MergeTarget, RowsToWrite, WrittenColumns}
import io.deltaic.spark.sql.analysis.PendingTarget

/**
 * Evolves the columns of a MERGE target in the plan, if its clauses may add columns. As for other writes
 * (see [[EvolveWrittenColumns]]), they are committed with the rows. Every clause is
 * resolved against them.
 *
 * {{{
 *   MergeIntoTable [UPDATE *, INSERT (b)]         MergeIntoTable [UPDATE (a, b), INSERT (b)]
 *   :- PendingTarget                        =>    :- t with [a, b]
 *   :  +- t [a]                                   +- source [a, b]
 *   +- source [a, b]
 * }}}
 *
 * A clause with a star assigns the columns of the source. Other columns of the table keep their values.
 */
private[spark] object EvolveMergedColumns extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case merge @ MergeIntoTable(PendingTarget(target), source, _, _, _, _, _)
        if target.resolved && source.resolved && merge.duplicateResolved =>
      val open = merge.copy(targetTable = target)
      val done = EliminateSubqueryAliases(target) match {
        case relation @ ExtractV2Table(table: DeltaicTable) =>
          val columns = columnsAfter(open, table)
          val evolved =
            if (columns == table.tableSchema.all) open
            else open.withNewTable(EvolvedRelation(relation, new MergeTarget(table, Some(columns))))
          withoutStars(evolved.copy(withSchemaEvolution = true))
        case _ => open
      }
      done.copyTagsFrom(merge)
      done
  }

  private def columnsAfter(merge: MergeIntoTable, table: DeltaicTable): StructType = {
    val rows = new AssignedColumns(merge).of(ColumnDefinitions.ofRows(merge.sourceTable.schema))
    WrittenColumns.evolved(table, RowsToWrite(rows, byName = true), Evolution.IfPossible)
      .getOrElse(table.tableSchema.all)
  }

  /** Spark's own expansion uses the table's columns only, and requires all of them from the source. */
  private def withoutStars(merge: MergeIntoTable): MergeIntoTable = {
    def all: Seq[Assignment] = merge.sourceTable.output.map { column =>
      val key: Expression = merge.targetTable.output
        .find(c => conf.resolver(c.name, column.name))
        .getOrElse(UnresolvedAttribute.quoted(column.name))
      Assignment(key, column)
    }
    merge.copy(
      matchedActions = merge.matchedActions.map {
        case UpdateStarAction(condition) => UpdateAction(condition, all, fromStar = true)
        case other => other
      },
      notMatchedActions = merge.notMatchedActions.map {
        case InsertStarAction(condition) => InsertAction(condition, all)
        case other => other
      }
    )
  }
}

/** The columns and fields of the source that the clauses of a MERGE assign to the target's of the same name. */
private final class AssignedColumns(merge: MergeIntoTable) extends SQLConfHelper {

  private val actions = merge.matchedActions ++ merge.notMatchedActions

  private val hasStar: Boolean = actions.exists {
    case _: UpdateStarAction | _: InsertStarAction => true
    case _ => false
  }

  private val paths: Seq[Seq[String]] = actions.flatMap {
    case update: UpdateAction => update.assignments
    case insert: InsertAction => insert.assignments
    case _ => Nil
  }.map(_.key).collect {
    case UnresolvedAttribute(parts) => unqualified(parts)
    case column: Attribute => Seq(column.name)
  }

  def of(source: StructType): StructType = assigned(source, Nil)

  private def assigned(struct: StructType, path: Seq[String]): StructType =
    StructType(struct.flatMap { field =>
      val own = path :+ field.name
      field.dataType match {
        case _ if paths.exists(isSame(_, own)) => Some(field)
        case inner: StructType if hasStar || paths.exists(startsWith(_, own)) =>
          Some(field.copy(dataType = assigned(inner, own)))
        case _ => Option.when[StructField](hasStar)(field)
      }
    })

  /** The assigned column, without the qualifier of the table. */
  private def unqualified(parts: Seq[String]): Seq[String] = {
    val columns = merge.targetTable.output
    val qualifiers = columns.headOption.toSeq.flatMap(_.qualifier.tails.filter(_.nonEmpty))
    if (columns.exists(c => conf.resolver(c.name, parts.head))) parts
    else
      qualifiers.find(q => startsWith(parts, q) && parts.length > q.length)
        .fold(parts)(q => parts.drop(q.length))
  }

  private def isSame(left: Seq[String], right: Seq[String]): Boolean =
    left.length == right.length && startsWith(left, right)

  private def startsWith(path: Seq[String], start: Seq[String]): Boolean =
    path.length >= start.length &&
    path.zip(start).forall { case (left, right) => conf.resolver(left, right) }
}
