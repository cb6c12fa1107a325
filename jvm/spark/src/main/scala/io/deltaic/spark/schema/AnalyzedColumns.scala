package io.deltaic.spark.schema

import java.util.{HashMap => JHashMap, Map => JMap}

import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.ColumnNames

/**
 * The physical names of a plan's columns at the time of analysis, stored as an option of its relation.
 *
 * When a plan runs, Spark replaces a named table by its newer version and resolves columns by name.
 * With column mapping, a name may refer to another column by then: two columns were renamed, or one
 * was dropped and added again.
 */
private[spark] object AnalyzedColumns {

  private val Name = "deltaic.analyzedColumns"
  private val Separator = "\n"

  def areIn(options: CaseInsensitiveStringMap): Boolean = options.containsKey(Name)

  /** The options of a relation, with the current columns of the table. */
  def addedTo(options: CaseInsensitiveStringMap, table: TableSchema): CaseInsensitiveStringMap =
    changed(options)(_.put(Name, if (isMapped(table)) of(table) else Separator + of(table)))

  def without(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    if (areIn(options)) changed(options)(_.remove(Name)) else options

  /**
   * Whether all columns still have the same physical names. Columns added later are not part of the
   * plan. This is always true for a table without column mapping, where Spark's own checks suffice.
   */
  def hold(options: CaseInsensitiveStringMap, table: TableSchema): Boolean =
    !areIn(options) || {
      val before = options.get(Name)
      !isMapped(table) && before.startsWith(Separator) || {
        val now = of(table).split(Separator).toSet
        before.stripPrefix(Separator).split(Separator).forall(name => name.isEmpty || now(name))
      }
    }

  /** One line for each column and field: its lower-case logical name and its physical name. */
  def of(table: TableSchema): String = namesOf(table.stored).mkString(Separator)

  /** Without column mapping, the name identifies a column; but column mapping may be enabled later. */
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
        val here = path :+ quoteIfNeeded(ColumnNames.folded(field.name))
        val physical = PhysicalSchema.nameOf(field, columnMapping = true)
        s"${here.mkString(".")}=$physical" +: namesOf(field.dataType, here)
      }
    case array: ArrayType => namesOf(array.elementType, path :+ "element")
    case map: MapType =>
      namesOf(map.keyType, path :+ "key") ++ namesOf(map.valueType, path :+ "value")
    case _ => Nil
  }
}
