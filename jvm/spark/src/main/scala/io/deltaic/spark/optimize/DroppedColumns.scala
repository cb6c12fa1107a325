package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._

import org.apache.parquet.schema.{GroupType, Type}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import io.deltaic.protocol.AddFile
import io.deltaic.spark.schema.{ColumnMapping, PhysicalSchema}
import io.deltaic.spark.write.{FilesBySchema, WriteTransaction}

/**
 * Finds the files that hold columns which the table no longer has. Only a table with column mapping can drop
 * columns without rewriting its files. The footers of all files are read, in tasks.
 */
private[optimize] object DroppedColumns {

  /** The paths of these files, as in the log. */
  def in(transaction: WriteTransaction, files: Seq[AddFile]): Set[String] =
    if (files.isEmpty || transaction.schema.mapping == ColumnMapping.NoMapping) Set.empty
    else {
      val schema = transaction.schema
      val columns = StructType(
        PhysicalSchema.of(schema.stored, columnMapping = true) ++
          schema.rowTracking.toSeq.flatMap(_.materialized)
      )
      val phase = s"find dropped columns in ${files.size} files"
      FilesBySchema.matching(transaction, files, phase)(() => hasOthers(_, columns))
    }

  private def hasOthers(group: GroupType, columns: StructType): Boolean =
    group.getFields.asScala.exists { stored =>
      columns.find(_.name == stored.getName).forall(column => isOther(stored, column.dataType))
    }

  /** Whether a stored column holds fields that its type does not have. */
  private def isOther(stored: Type, dataType: DataType): Boolean = dataType match {
    case _ if stored.isPrimitive => false
    case struct: StructType => hasOthers(stored.asGroupType, struct)
    case ArrayType(element, _) => isOther(elementOf(stored.asGroupType.getType(0)), element)
    case MapType(key, value, _) =>
      val entry = stored.asGroupType.getType(0).asGroupType
      isOther(entry.getType(0), key) || isOther(entry.getType(1), value)
    case _ => false
  }

  /** Of the group `list` of the Parquet format. */
  private def elementOf(repeated: Type): Type =
    if (repeated.isPrimitive || repeated.asGroupType.getFieldCount != 1) repeated
    else repeated.asGroupType.getType(0)
}
