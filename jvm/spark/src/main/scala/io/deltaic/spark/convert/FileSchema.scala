package io.deltaic.spark.convert

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.execution.datasources.parquet.ParquetFolderInternals
import org.apache.spark.sql.types._

import io.deltaic.protocol.ColumnNames.folded

/**
 * The columns of a file.
 *
 * Its Parquet types decide. What Spark's writer says of the columns in the footer is used where Parquet types say less,
 * such as for the length of strings: it may have been copied from another file.
 */
private[convert] object FileSchema {

  /** @param conf with the settings of `ParquetFolderInternals.configure` */
  def of(file: FileMetaData, conf: Configuration): StructType = {
    val stored = SchemaInternals.asNullable(ParquetFolderInternals.schema(file, conf))
    ParquetFolderInternals.declaredSchema(file) match {
      case Some(declared) => within(stored, SchemaInternals.asNullable(declared))
      case None => stored
    }
  }

  /** The paths of columns of one struct whose names are the same but for their case. */
  def duplicates(dataType: DataType, path: Seq[String] = Nil): Option[Seq[String]] =
    dataType match {
      case struct: StructType =>
        struct.fieldNames.toSeq.groupBy(folded).values.find(_.size > 1)
          .map(_.map(name => (path :+ name).mkString(".")))
          .orElse(struct.iterator.flatMap(f => duplicates(f.dataType, path :+ f.name)).nextOption())
      case ArrayType(element, _) => duplicates(element, path :+ "element")
      case MapType(key, value, _) =>
        duplicates(key, path :+ "key").orElse(duplicates(value, path :+ "value"))
      case _ => None
    }

  private def within(stored: StructType, declared: StructType): StructType =
    StructType(stored.map { field =>
      declared.find(_.name == field.name).fold(field) { said =>
        val dataType = of(field.dataType, said.dataType)
        val kept = if (dataType == field.dataType && !alike(field.dataType, said.dataType)) {
          Metadata.empty
        } else keptMetadata(said.metadata)
        StructField(field.name, dataType, nullable = true, kept)
      }
    })

  private def of(stored: DataType, declared: DataType): DataType = (stored, declared) match {
    case (inFile: StructType, said: StructType) => within(inFile, said)
    case (inFile: ArrayType, said: ArrayType) =>
      inFile.copy(elementType = of(inFile.elementType, said.elementType))
    case (inFile: MapType, said: MapType) =>
      inFile.copy(of(inFile.keyType, said.keyType), of(inFile.valueType, said.valueType))
    case (_, said) if alike(stored, said) => said
    case _ => stored
  }

  /** Whether a column that Spark's writer declares with a type is stored as if it had the other. */
  private def alike(stored: DataType, declared: DataType): Boolean = (stored, declared) match {
    case (one, other) if one == other => true
    case (StringType | BinaryType, _: StringType) => true
    case (TimestampType, TimestampNTZType) => true
    case (IntegerType, _: YearMonthIntervalType) | (LongType, _: DayTimeIntervalType) => true
    case (struct: StructType, VariantType) =>
      Seq("metadata", "value").forall(struct.fieldNames.contains)
    case (inFile, udt: UserDefinedType[_]) =>
      inFile == SchemaInternals.asNullable(StructType(Seq(StructField(
        "c",
        udt.sqlType
      )))).head.dataType
    case _ => false
  }

  /** Other metadata is not of the data: the default of a column, or its place in another Delta table. */
  private def keptMetadata(metadata: Metadata): Metadata = {
    val kept = new MetadataBuilder
    KeptKeys.filter(metadata.contains).foreach(key => kept.putString(key, metadata.getString(key)))
    kept.build()
  }

  private val KeptKeys = Seq("comment", "__CHAR_VARCHAR_TYPE_STRING")
}
