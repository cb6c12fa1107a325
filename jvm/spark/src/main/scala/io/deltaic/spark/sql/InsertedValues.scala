package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.StoreAssignmentPolicy
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import io.deltaic.spark.catalog.RowsToWrite

/**
 * Casts what an INSERT or a write by name brings, where Spark would refuse the types, as it does a text for a
 * DATE (docs/decisions/0027). What Spark takes it casts itself.
 *
 * @param table its path, for errors
 * @param rows the rows, under the names by which they go to columns
 * @param exactly whether a value that a cast would cut is an error
 */
private[sql] final class InsertedValues(
    table: String,
    conf: SQLConf,
    rows: RowsToWrite,
    exactly: Boolean
) {
  private val values = new AssignedValues(table, conf, mayLackFields = true, rows.byName, exactly)
  private val isAnsi = conf.storeAssignmentPolicy == StoreAssignmentPolicy.ANSI

  /** @param columns those of the table */
  def fitted(query: LogicalPlan, columns: Seq[Attribute]): LogicalPlan =
    // What Spark refuses under STRICT stays refused.
    if (conf.storeAssignmentPolicy == StoreAssignmentPolicy.STRICT) query
    else {
      val open = columns.filterNot(column => rows.stated.exists(_.equalsIgnoreCase(column.name)))
      val changed = query.output.zipWithIndex.map { case (value, place) =>
        columnFor(place, open).fold[NamedExpression](value)(fitted(value, _))
      }
      if (changed == query.output) query else Project(changed, query)
    }

  private def columnFor(place: Int, columns: Seq[Attribute]): Option[Attribute] =
    if (rows.byName) columns.find(_.name.equalsIgnoreCase(rows.columns(place).name))
    else columns.lift(place)

  private def fitted(value: Attribute, column: Attribute): NamedExpression =
    if (isAnsi && isTaken(value.dataType, column.dataType) && !isCut(value, column)) value
    else
      values.fitted(value, column.dataType, Seq(column.name)) match {
        case same: Attribute => same
        case cast =>
          Alias(cast, value.name)(
            qualifier = value.qualifier,
            explicitMetadata = Some(value.metadata)
          )
      }

  private def isCut(value: Attribute, column: Attribute): Boolean =
    exactly && values.isExact(value.dataType, values.retyped(value.dataType, column.dataType))

  /** Whether Spark itself stores values of the type in a column. Fields too few or too many are its concern. */
  private def isTaken(from: DataType, column: DataType): Boolean = (from, column) match {
    case (struct: StructType, wanted: StructType) =>
      struct.zipWithIndex.forall { case (field, place) =>
        values.fieldFor(field, place, wanted).forall(f => isTaken(field.dataType, f.dataType))
      }
    case (ArrayType(element, _), ArrayType(wanted, _)) => isTaken(element, wanted)
    case (MapType(key, value, _), MapType(wantedKey, wantedValue, _)) =>
      isTaken(key, wantedKey) && isTaken(value, wantedValue)
    case _ => Cast.canANSIStoreAssign(from, column)
  }
}
