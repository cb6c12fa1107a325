package io.deltaic.spark.catalog.target

import org.apache.spark.sql.catalyst.expressions.Cast
import org.apache.spark.sql.types._

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable

/**
 * Refuses rows of a save that lack columns of the table and need a cast in others, as delta-spark does: such
 * rows are more likely meant for another table. Widening casts of numbers are allowed.
 *
 * Generated, identity and default columns count as lacking, too: delta-spark refuses a cast in rows without them.
 */
private[catalog] object PartialRows {

  /**
   * @param columns those of the table after the write
   * @param rows the columns of the rows, which are matched to the table's by name
   */
  def refuse(table: DeltaicTable, columns: StructType, rows: StructType): Unit =
    for {
      lacking <- lackingIn(rows, columns).headOption
      (column, from, to) <- castsIn(rows, columns).headOption
    } {
      val widening =
        if (Cast.canUpCast(to, from))
          ". With delta.enableTypeWidening=true of the table and the option mergeSchema=true, its type becomes the wider one"
        else ""
      throw DeltaicException(
        "DELTAIC_ASSIGNMENT_REFUSED",
        Map(
          "table" -> table.log.table.toString,
          "column" -> column,
          "reason" ->
            s"${from.sql} is not cast to ${to.sql}, because the rows lack another column of the table, $lacking$widening"
        )
      )
    }

  private def lackingIn(rows: DataType, columns: DataType, path: String = ""): Seq[String] =
    (rows, columns) match {
      case (rows: StructType, columns: StructType) =>
        columns.toSeq.filterNot(_.dataType == NullType).flatMap { column =>
          val here = path + column.name
          find(rows, column.name).fold(Seq(here)) { field =>
            lackingIn(field.dataType, column.dataType, s"$here.")
          }
        }
      case (rows: ArrayType, columns: ArrayType) =>
        lackingIn(rows.elementType, columns.elementType, s"${path}element.")
      case (rows: MapType, columns: MapType) =>
        lackingIn(rows.keyType, columns.keyType, s"${path}key.") ++
          lackingIn(rows.valueType, columns.valueType, s"${path}value.")
      case _ => Nil
    }

  private def castsIn(
      from: DataType,
      to: DataType,
      path: String = ""
  ): Seq[(String, DataType, DataType)] = (from, to) match {
    case (rows: StructType, columns: StructType) =>
      rows.toSeq.flatMap { field =>
        find(columns, field.name).toSeq.flatMap { column =>
          val here = if (path.isEmpty) column.name else s"$path.${column.name}"
          castsIn(field.dataType, column.dataType, here)
        }
      }
    case (rows: ArrayType, columns: ArrayType) =>
      castsIn(rows.elementType, columns.elementType, s"$path.element")
    case (rows: MapType, columns: MapType) =>
      castsIn(rows.keyType, columns.keyType, s"$path.key") ++
        castsIn(rows.valueType, columns.valueType, s"$path.value")
    case (user: UserDefinedType[_], _) => castsIn(user.sqlType, to, path)
    case (_: StringType, _: StringType) | (NullType, _) | (_, NullType) => Nil
    case (_: NumericType, _: NumericType) if Cast.canUpCast(from, to) => Nil
    case _ if isStoredAsInt(from) && isStoredAsInt(to) => Nil
    case _ => if (from == to) Nil else Seq((path, from, to))
  }

  /** Types that Parquet stores alike; delta-spark does not distinguish them here. */
  private def isStoredAsInt(dataType: DataType): Boolean =
    dataType == ByteType || dataType == ShortType || dataType == IntegerType

  private def find(struct: StructType, name: String): Option[StructField] =
    struct.find(_.name.equalsIgnoreCase(name))
}
