package io.deltaic.spark.schema

import org.apache.spark.sql.types._

import io.deltaic.protocol.{ColumnNames, Metadata}

/**
 * Whether data written under one schema means the same when read under another.
 *
 * A feed returns all versions with the columns of one of them, and a DataFrame created for one
 * version returns newer ones with its columns. Columns may only have been added in between: if a
 * column was dropped, renamed or changed its type, older or newer rows would have wrong values, or
 * none.
 */
private[spark] object ReadCompatibility {

  /**
   * For readers that read a column always from files or always from the log: a column must be
   * stored in the same place in both versions.
   *
   * @param dataIsOlder whether `data` is of an older version than `read`
   * @param readsWidened whether a column's type may have been widened, with the type change
   *   recorded in its metadata, which is needed to interpret bounds of its values (Protocol § Type
   *   Widening)
   */
  def holds(
      data: Metadata,
      read: Metadata,
      dataIsOlder: Boolean,
      readsWidened: Boolean = false
  ): Boolean =
    data.partitionColumns == read.partitionColumns &&
    ofColumns(data, read, new ReadCompatibility(dataIsOlder, dataIsOlder && readsWidened))

  /** For readers that find each column in files or in the log, wherever it is stored. */
  def ofColumns(data: Metadata, read: Metadata, dataIsOlder: Boolean): Boolean =
    ofColumns(data, read, new ReadCompatibility(dataIsOlder, mayWiden = false))

  private def ofColumns(data: Metadata, read: Metadata, rule: ReadCompatibility): Boolean =
    (DataType.fromJson(data.schemaString), DataType.fromJson(read.schemaString)) match {
      case (data: StructType, read: StructType) =>
        if (rule.olderIsData) rule.onlyAddsColumns(data, read) else rule.onlyAddsColumns(read, data)
      case _ => false
    }

  /** Under column mapping, a column that was dropped and added again is another one. */
  private def storedAs(field: StructField): String =
    PhysicalSchema.nameOf(field, columnMapping = true)
}

private final class ReadCompatibility(val olderIsData: Boolean, mayWiden: Boolean) {

  /** Whether `newer` is `older` with columns added. */
  def onlyAddsColumns(older: StructType, newer: StructType): Boolean = {
    val byName = newer.fields.map(f => ColumnNames.folded(f.name) -> f).toMap
    older.fields.forall { before =>
      byName.get(ColumnNames.folded(before.name)).exists { after =>
        before.name == after.name &&
        ReadCompatibility.storedAs(before) == ReadCompatibility.storedAs(after) &&
        nullabilityHolds(before.nullable, after.nullable) &&
        holds(before.dataType, after.dataType, TypeChange.of(after).nonEmpty)
      }
    }
  }

  /** @param changed whether the newer column's metadata records a type change, at the top level or nested */
  private def holds(before: DataType, after: DataType, changed: Boolean): Boolean =
    (before, after) match {
      case (b: StructType, a: StructType) => onlyAddsColumns(b, a)
      case (b: ArrayType, a: ArrayType) =>
        nullabilityHolds(b.containsNull, a.containsNull) &&
        holds(b.elementType, a.elementType, changed)
      case (b: MapType, a: MapType) =>
        nullabilityHolds(b.valueContainsNull, a.valueContainsNull) &&
        holds(b.keyType, a.keyType, changed) && holds(b.valueType, a.valueType, changed)
      case _ => before == after || (mayWiden && widened(before, after, changed))
    }

  private def widened(before: DataType, after: DataType, changed: Boolean): Boolean =
    if (changed) TypeChange.widens(before, after) else TypeChange.isStoredAlike(before, after)

  /** Data with nulls can be read only into a nullable column. */
  private def nullabilityHolds(older: Boolean, newer: Boolean): Boolean = {
    val (data, read) = if (olderIsData) (older, newer) else (newer, older)
    !data || read
  }
}
