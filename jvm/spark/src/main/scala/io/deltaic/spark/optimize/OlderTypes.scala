package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._

import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation
import org.apache.parquet.schema.{
  GroupType,
  LogicalTypeAnnotation,
  MessageTypeParser,
  PrimitiveType,
  Type
}
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter
import org.apache.spark.sql.types._

import io.deltaic.protocol.AddFile
import io.deltaic.spark.schema.{ColumnMapping, PhysicalSchema, TypeChange}
import io.deltaic.spark.write.{FilesBySchema, WriteTransaction}

/**
 * Finds the files that hold columns in another type than the table has. Only columns with type changes in their
 * metadata can differ. The footers of all files are read, in tasks.
 */
private[optimize] object OlderTypes {

  /** The paths of these files, as in the log. */
  def in(transaction: WriteTransaction, files: Seq[AddFile]): Set[String] = {
    val schema = transaction.schema
    val changed =
      schema.stored.filter(column => !schema.isPartition(column.name) && hasChanged(column))
    if (files.isEmpty || changed.isEmpty) Set.empty
    else {
      val isMapped = schema.mapping != ColumnMapping.NoMapping
      val columns = new SparkToParquetSchemaConverter(transaction.copySpec.hadoopConf)
        .convert(PhysicalSchema.of(withoutVoid(StructType(changed)), isMapped)).toString
      val byId = schema.mapping == ColumnMapping.ById
      FilesBySchema.matching(transaction, files, s"find older types in ${files.size} files") { () =>
        val expected = MessageTypeParser.parseMessageType(columns)
        differs(_, expected, byId)
      }
    }
  }

  private def hasChanged(column: StructField): Boolean =
    column.metadata.contains(TypeChange.Key) || hasChanged(column.dataType)

  private def hasChanged(dataType: DataType): Boolean = dataType match {
    case struct: StructType => struct.exists(hasChanged(_))
    case ArrayType(element, _) => hasChanged(element)
    case MapType(key, value, _) => hasChanged(key) || hasChanged(value)
    case _ => false
  }

  /** Void columns are not stored. */
  private def withoutVoid(struct: StructType): StructType =
    StructType(struct.filter(_.dataType != NullType).map { column =>
      column.copy(dataType = withoutVoidWithin(column.dataType))
    })

  private def withoutVoidWithin(dataType: DataType): DataType = dataType match {
    case struct: StructType => withoutVoid(struct)
    case array: ArrayType => array.copy(elementType = withoutVoidWithin(array.elementType))
    case map: MapType =>
      map.copy(withoutVoidWithin(map.keyType), withoutVoidWithin(map.valueType))
    case other => other
  }

  /** Whether a column of a group is stored in another type. A file may lack columns that are newer than it. */
  private def differs(stored: GroupType, expected: GroupType, byId: Boolean): Boolean =
    expected.getFields.asScala.exists { column =>
      stored.getFields.asScala.find(isSame(_, column, byId)).exists(differs(_, column, byId))
    }

  private def isSame(stored: Type, expected: Type, byId: Boolean): Boolean =
    if (byId && expected.getId != null) stored.getId == expected.getId
    else stored.getName == expected.getName

  private def differs(stored: Type, expected: Type, byId: Boolean): Boolean =
    (stored.isPrimitive, expected.isPrimitive) match {
      case (true, true) => differs(stored.asPrimitiveType, expected.asPrimitiveType)
      case (false, false) if isCollection(expected) =>
        // Writers name what is within lists and maps in several ways, but all in the same order.
        val (ours, theirs) = (expected.asGroupType, stored.asGroupType)
        ours.getFieldCount != theirs.getFieldCount ||
        ours.getFields.asScala.zip(theirs.getFields.asScala).exists { case (our, their) =>
          differsWithin(their, our, byId)
        }
      case (false, false) => differs(stored.asGroupType, expected.asGroupType, byId)
      case _ => true
    }

  /** The repeated group of a list or a map. */
  private def differsWithin(stored: Type, expected: Type, byId: Boolean): Boolean =
    if (stored.isPrimitive || expected.isPrimitive) true
    else {
      val (ours, theirs) = (expected.asGroupType, stored.asGroupType)
      ours.getFieldCount != theirs.getFieldCount ||
      ours.getFields.asScala.zip(theirs.getFields.asScala).exists { case (our, their) =>
        differs(their, our, byId)
      }
    }

  private def isCollection(group: Type): Boolean = group.getLogicalTypeAnnotation match {
    case null => false
    case annotation =>
      annotation == LogicalTypeAnnotation.listType || annotation == LogicalTypeAnnotation.mapType
  }

  private def differs(stored: PrimitiveType, expected: PrimitiveType): Boolean =
    stored.getPrimitiveTypeName != expected.getPrimitiveTypeName ||
    annotation(stored) != annotation(expected)

  /** None also for the annotation of an integer that says what its physical type says. */
  private def annotation(primitive: PrimitiveType): Option[LogicalTypeAnnotation] =
    Option(primitive.getLogicalTypeAnnotation).filter {
      case integer: IntLogicalTypeAnnotation => integer.getBitWidth < 32 || !integer.isSigned
      case _ => true
    }
}
