package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import io.deltaic.spark.catalog.target.RowsToWrite

/**
 * Casts the values of an INSERT or a write by name if Spark would refuse their types, such as a string for a
 * DATE (docs/decisions/0027). Spark itself casts the types that it accepts.
 *
 * @param table its path, for errors
 * @param rows the rows, under the names by which they are matched to columns
 * @param exactly whether a value that a cast would truncate is an error
 */
private[sql] final class InsertedValues(
    table: String,
    conf: SQLConf,
    rows: RowsToWrite,
    exactly: Boolean
) {
  private val values = new AssignedValues(table, conf, mayLackFields = true, rows.byName, exactly)
  private val isAnsi = conf.storeAssignmentPolicy == StoreAssignmentPolicy.ANSI

  /** @param columns of the table */
  def fitted(query: LogicalPlan, columns: Seq[Attribute]): LogicalPlan =
    // Under STRICT, the types that Spark refuses stay refused.
    if (conf.storeAssignmentPolicy == StoreAssignmentPolicy.STRICT) query
    else {
      val open = columns.filterNot(column => rows.specified.exists(_.equalsIgnoreCase(column.name)))
      val changed = query.output.zipWithIndex.map { case (value, place) =>
        columnFor(place, open).fold[NamedExpression](value)(fitted(value, _))
      }
      if (changed == query.output) query else Project(changed, query)
    }

  private def columnFor(place: Int, columns: Seq[Attribute]): Option[Attribute] =
    if (rows.byName) columns.find(_.name.equalsIgnoreCase(rows.columns(place).name))
    else columns.lift(place)

  private def fitted(value: Attribute, column: Attribute): NamedExpression =
    if (isAnsi && isAccepted(value.dataType, column.dataType) && !mustBeExact(value, column)) value
    else
      values.fitted(value, column.dataType, Seq(column.name)) match {
        case same: Attribute => same
        case cast =>
          Alias(cast, value.name)(
            qualifier = value.qualifier,
            explicitMetadata = Some(value.metadata)
          )
      }

  private def mustBeExact(value: Attribute, column: Attribute): Boolean =
    exactly && values.isExact(value.dataType, values.retyped(value.dataType, column.dataType))

  /** Whether Spark itself casts values of the type for a column. It checks missing and extra fields. */
  private def isAccepted(from: DataType, column: DataType): Boolean = (from, column) match {
    case (struct: StructType, wanted: StructType) =>
      struct.zipWithIndex.forall { case (field, place) =>
        values.fieldFor(field, place, wanted).forall(f => isAccepted(field.dataType, f.dataType))
      }
    case (ArrayType(element, _), ArrayType(wanted, _)) => isAccepted(element, wanted)
    case (MapType(key, value, _), MapType(wantedKey, wantedValue, _)) =>
      isAccepted(key, wantedKey) && isAccepted(value, wantedValue)
    case _ => Cast.canANSIStoreAssign(from, column)
  }
}
