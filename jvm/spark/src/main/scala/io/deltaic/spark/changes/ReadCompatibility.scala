package io.deltaic.spark.changes

import java.util.Locale

import org.apache.spark.sql.types._

import io.deltaic.protocol.Metadata
import io.deltaic.spark.scan.PhysicalSchema

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
   */
  def holds(data: Metadata, read: Metadata, dataIsOlder: Boolean): Boolean =
    data.partitionColumns == read.partitionColumns && ofColumns(data, read, dataIsOlder)

  /** For those who look for each column where it lies. */
  def ofColumns(data: Metadata, read: Metadata, dataIsOlder: Boolean): Boolean =
    (DataType.fromJson(data.schemaString), DataType.fromJson(read.schemaString)) match {
      case (data: StructType, read: StructType) =>
        if (dataIsOlder) grew(data, read, olderIsData = true)
        else grew(read, data, olderIsData = false)
      case _ => false
    }

  /** Whether `newer` is `older` with columns added. */
  private def grew(older: StructType, newer: StructType, olderIsData: Boolean): Boolean = {
    val byName = newer.fields.map(f => f.name.toLowerCase(Locale.ROOT) -> f).toMap
    older.fields.forall { before =>
      byName.get(before.name.toLowerCase(Locale.ROOT)).exists { after =>
        before.name == after.name && storedAs(before) == storedAs(after) &&
        nullabilityHolds(before.nullable, after.nullable, olderIsData) &&
        sameType(before.dataType, after.dataType, olderIsData)
      }
    }
  }

  private def sameType(before: DataType, after: DataType, olderIsData: Boolean): Boolean =
    (before, after) match {
      case (b: StructType, a: StructType) => grew(b, a, olderIsData)
      case (b: ArrayType, a: ArrayType) =>
        nullabilityHolds(b.containsNull, a.containsNull, olderIsData) &&
        sameType(b.elementType, a.elementType, olderIsData)
      case (b: MapType, a: MapType) =>
        nullabilityHolds(b.valueContainsNull, a.valueContainsNull, olderIsData) &&
        sameType(b.keyType, a.keyType, olderIsData) &&
        sameType(b.valueType, a.valueType, olderIsData)
      case _ => before == after
    }

  /** Nulls in the data need a column that may be null to be read into. */
  private def nullabilityHolds(older: Boolean, newer: Boolean, olderIsData: Boolean): Boolean = {
    val (data, read) = if (olderIsData) (older, newer) else (newer, older)
    !data || read
  }

  /** Under column mapping, a column that was dropped and added again is another one. */
  private def storedAs(field: StructField): String =
    PhysicalSchema.nameOf(field, columnMapping = true)
}
