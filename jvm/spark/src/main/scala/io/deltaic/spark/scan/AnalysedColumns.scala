package io.deltaic.spark.scan

import java.util.{HashMap => JHashMap, Locale, Map => JMap}

import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * What the columns of a plan were called in the data files when the plan was analysed, as an option of its relation.
 *
 * Spark puts a newer version of a named table into a plan when it runs, and looks columns up by their names. With column
 * mapping, a name may be another column's since: after two changed their names, or one was dropped and added again.
 */
private[spark] object AnalysedColumns {

  private val Name = "deltaic.analysedColumns"
  private val Separator = "\n"

  def areIn(options: CaseInsensitiveStringMap): Boolean = options.containsKey(Name)

  /** The options of a relation with those that the table has now. */
  def addedTo(options: CaseInsensitiveStringMap, table: TableSchema): CaseInsensitiveStringMap =
    changed(options)(_.put(Name, if (isMapped(table)) of(table) else Separator + of(table)))

  def without(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    if (areIn(options)) changed(options)(_.remove(Name)) else options

  /**
   * Whether all of them are where they were. Those that came since are no part of the plan. As long as a table has no
   * column mapping, which Spark's own checks suffice for, it does.
   */
  def hold(options: CaseInsensitiveStringMap, table: TableSchema): Boolean =
    !areIn(options) || {
      val before = options.get(Name)
      !isMapped(table) && before.startsWith(Separator) || {
        val now = of(table).split(Separator).toSet
        before.stripPrefix(Separator).split(Separator).forall(name => name.isEmpty || now(name))
      }
    }

  /** A line for each column and field: what users call it in any case, and what files do. */
  def of(table: TableSchema): String = namesOf(table.stored).mkString(Separator)

  /** Without column mapping, a column is what its name says; but a table may get one. */
  private def isMapped(table: TableSchema): Boolean = table.mapping != ColumnMapping.NoMapping

  private def changed(options: CaseInsensitiveStringMap)(
      change: JMap[String, String] => Any
  ): CaseInsensitiveStringMap = {
    val all = new JHashMap(options.asCaseSensitiveMap)
    change(all)
    new CaseInsensitiveStringMap(all)
  }

  private def namesOf(dataType: DataType, path: Seq[String] = Nil): Seq[String] = dataType match {
    case struct: StructType =>
      struct.flatMap { field =>
        val here = path :+ quoteIfNeeded(field.name.toLowerCase(Locale.ROOT))
        val physical = PhysicalSchema.nameOf(field, columnMapping = true)
        s"${here.mkString(".")}=$physical" +: namesOf(field.dataType, here)
      }
    case array: ArrayType => namesOf(array.elementType, path :+ "element")
    case map: MapType =>
      namesOf(map.keyType, path :+ "key") ++ namesOf(map.valueType, path :+ "value")
    case _ => Nil
  }
}
