package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.scan.TableScan

/**
 * Lets a DELETE read none of the files that lose all their rows, as partition values or bounds prove:
 * they are removed, and what is left of the statement is about the others.
 *
 * {{{
 *   WriteDelta                        WriteDelta
 *   +- Project [row id]         =>    +- Project [row id]
 *      +- Filter [id < 25]               +- Filter [id < 25]
 *         +- t [0-9, 10-19, 20-29]          +- t [20-29]
 * }}}
 *
 * A file loses all its rows if it cannot hold one for which the condition is false, or null. So it is
 * the choice of files for that condition, and as sound.
 */
private[spark] object EndWholeFiles extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case write: WriteDelta =>
      (write.operation, write.query) match {
        case (change: RowLevelChange, PhysicalOperation(_, filters, ScanOfTable(_, scan)))
            if change.mayEndWholeFiles =>
          scan.splitOffWhole(remaining(scan.filters ++ filters)) match {
            case (Nil, _) => write
            case (whole, rest) =>
              change.endWhole(whole)
              write.copy(query = write.query.transform {
                case ScanOfTable(relation, same) if same eq scan => relation.copy(scan = rest)
              })
          }
        case _ => write
      }
  }

  private object ScanOfTable {
    def unapply(plan: LogicalPlan): Option[(DataSourceV2ScanRelation, TableScan)] = plan match {
      case relation: DataSourceV2ScanRelation =>
        Some(relation.scan).collect { case scan: TableScan => relation -> scan }
      case _ => None
    }
  }

  /** What is true of the rows that stay: that a condition is false or, for want of a value, null. */
  private def remaining(conditions: Seq[Expression]): Expression =
    conditions.map { condition =>
      if (!isPlain(condition)) Literal.TrueLiteral
      else
        condition.references.toSeq
          .foldLeft[Expression](Not(condition))((stays, column) => Or(stays, IsNull(column)))
    }.foldLeft[Expression](Literal.FalseLiteral)(Or(_, _))

  /** Conditions that are null only where a column is. */
  private def isPlain(condition: Expression): Boolean = condition match {
    case And(l, r) => isPlain(l) && isPlain(r)
    case Or(l, r) => isPlain(l) && isPlain(r)
    case Not(child) => isPlain(child)
    case IsNull(_: Attribute) | IsNotNull(_: Attribute) => true
    case comparison: BinaryComparison => isValue(comparison.left) && isValue(comparison.right)
    case In(_: Attribute, values) => values.forall(isConstant)
    case InSet(_: Attribute, values) => !values.contains(null)
    case Literal(value, _) => value != null
    case _ => false
  }

  private def isValue(operand: Expression): Boolean =
    operand.isInstanceOf[Attribute] || isConstant(operand)

  private def isConstant(operand: Expression): Boolean = operand match {
    case Literal(value, _) => value != null
    case _ => false
  }
}
