package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.types.{NullType, StructField}

import io.deltaic.spark.scan.TableSchema

/**
 * Columns that hold nothing. Users do not see them and files have no place for them (Protocol § Primitive
 * Types), but another writer's job that made the table goes on to bring them along.
 */
private[spark] object VoidColumns {

  /** The places of the columns of rows that are void, and go to one that is so in the table's log. */
  def broughtBy(rows: RowsToWrite, table: DeltaicTable): Set[Int] = {
    lazy val declared = TableSchema.declared(table.snapshot)
      .filterNot(field => rows.stated(field.name))
    def takes(field: StructField, place: Int): Boolean =
      if (rows.byName)
        declared.exists(own => isVoid(own) && own.name.equalsIgnoreCase(field.name))
      // Rows may as well be made for the columns that are seen.
      else declared.length == rows.columns.length && isVoid(declared(place))
    // A file without any column could not be written.
    if (table.tableSchema.all.isEmpty) Set.empty
    else
      rows.columns.zipWithIndex.collect {
        case (field, place) if isVoid(field) && takes(field, place) => place
      }.toSet
  }

  /** @param places see [[broughtBy]] */
  def without(places: Set[Int], rows: LogicalPlan): LogicalPlan =
    if (places.isEmpty) rows else Project(kept(places, rows.output), rows)

  /** What is left of things of which there is one for each column. */
  def kept[A](places: Set[Int], ofColumns: Seq[A]): Seq[A] =
    ofColumns.zipWithIndex.collect { case (one, place) if !places(place) => one }

  private def isVoid(field: StructField): Boolean = field.dataType == NullType
}
