package io.deltaic.spark.changes

import java.util.Locale

import org.apache.spark.sql.types._

import io.deltaic.protocol.Metadata
import io.deltaic.spark.scan.{PhysicalSchema, TypeChange}

/**
 * Whether data written under one schema means the same when read under another.
 *
 * A feed shows all versions with the columns of one of them, and a DataFrame that was made of one version shows
 * newer ones with its columns. Columns may have been added in between and nothing else: of a column that was
 * dropped, renamed or given another type, older or newer rows would show wrong values, or none.
 */
private[spark] object ReadCompatibility {

  /**
   * For those who read every column from one place: one that lies in files in one version and in the log in another is
   * not the same to them.
   *
   * @param dataIsOlder whether `data` is of a version before the one that `read` is of
   * @param readsWidened whether a column may since have been given a type that holds all values of the older one,
   *   and says so: bounds of its values are taken for what they are by that (Protocol § Type Widening)
   */
  def holds(
      data: Metadata,
      read: Metadata,
      dataIsOlder: Boolean,
      readsWidened: Boolean = false
  ): Boolean =
    data.partitionColumns == read.partitionColumns &&
    ofColumns(data, read, new ReadCompatibility(dataIsOlder, dataIsOlder && readsWidened))

  /** For those who look for each column where it lies. */
  def ofColumns(data: Metadata, read: Metadata, dataIsOlder: Boolean): Boolean =
    ofColumns(data, read, new ReadCompatibility(dataIsOlder, mayWiden = false))

  private def ofColumns(data: Metadata, read: Metadata, rule: ReadCompatibility): Boolean =
    (DataType.fromJson(data.schemaString), DataType.fromJson(read.schemaString)) match {
      case (data: StructType, read: StructType) =>
        if (rule.olderIsData) rule.grew(data, read) else rule.grew(read, data)
      case _ => false
    }

  /** Under column mapping, a column that was dropped and added again is another one. */
  private def storedAs(field: StructField): String =
    PhysicalSchema.nameOf(field, columnMapping = true)
}

private final class ReadCompatibility(val olderIsData: Boolean, mayWiden: Boolean) {

  /** Whether `newer` is `older` with columns added. */
  def grew(older: StructType, newer: StructType): Boolean = {
    val byName = newer.fields.map(f => f.name.toLowerCase(Locale.ROOT) -> f).toMap
    older.fields.forall { before =>
      byName.get(before.name.toLowerCase(Locale.ROOT)).exists { after =>
        before.name == after.name &&
        ReadCompatibility.storedAs(before) == ReadCompatibility.storedAs(after) &&
        nullabilityHolds(before.nullable, after.nullable) &&
        holds(before.dataType, after.dataType, TypeChange.of(after).nonEmpty)
      }
    }
  }

  /** @param changed whether the newer column says that its type has changed, there or within */
  private def holds(before: DataType, after: DataType, changed: Boolean): Boolean =
    (before, after) match {
      case (b: StructType, a: StructType) => grew(b, a)
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

  /** Nulls in the data need a column that may be null to be read into. */
  private def nullabilityHolds(older: Boolean, newer: Boolean): Boolean = {
    val (data, read) = if (olderIsData) (older, newer) else (newer, older)
    !data || read
  }
}
