package io.deltaic.spark.convert

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types._

import io.deltaic.protocol.ColumnNames.folded
import io.deltaic.spark.schema.TypeChange

/** The columns of a file, which may be those of many. */
private[convert] final case class SchemaOfFile(columns: StructType, file: String)

/**
 * The columns of a table with these files: all of them, in the order in which they occur, each with a type to which readers
 * widen the types that the files have (Protocol § Type Widening).
 *
 * @param files distinct schemas, each with a file that has it
 */
private[convert] final class MergedSchema(table: Path, files: Seq[SchemaOfFile]) {
  import MergedSchema._

  /** The columns that any file has. */
  def ofFiles: StructType = withTypeChanges(
    files.foldLeft(new StructType()) { (merged, next) =>
      mergedStruct(merged, next.columns, Nil, next.file)
    }
  )

  /**
   * The columns that a catalog declares, under the names that the files spell.
   *
   * @param declared its columns
   */
  def ofCatalog(declared: StructType): StructType =
    withTypeChanges(fitted(declared, files.map(f => f.columns -> f.file), Nil))

  private def mergedStruct(
      one: StructType,
      other: StructType,
      path: Seq[String],
      file: String
  ): StructType = {
    val existing = one.map { field =>
      find(other, field.name).fold(field) { next =>
        val here = path :+ field.name
        if (next.name != field.name) throw spellings(here, path :+ next.name, file)
        val comment = if (field.metadata == Metadata.empty) next.metadata else field.metadata
        field.copy(dataType = merged(field.dataType, next.dataType, here, file), metadata = comment)
      }
    }
    StructType(existing ++ other.filter(field => find(one, field.name).isEmpty))
  }

  private def merged(one: DataType, other: DataType, path: Seq[String], file: String): DataType =
    (one, other) match {
      case (a: StructType, b: StructType) => mergedStruct(a, b, path, file)
      case (ArrayType(a, _), ArrayType(b, _)) =>
        ArrayType(merged(a, b, path :+ Element, file), containsNull = true)
      case (MapType(aKey, aValue, _), MapType(bKey, bValue, _)) =>
        MapType(
          merged(aKey, bKey, path :+ Key, file),
          merged(aValue, bValue, path :+ Value, file),
          valueContainsNull = true
        )
      case (a, b) => widest(a, b).getOrElse(throw types(path, b, file))
    }

  private def fitted(
      declared: StructType,
      found: Seq[(StructType, String)],
      path: Seq[String]
  ): StructType = StructType(declared.map { field =>
    val same = found.flatMap { case (columns, file) =>
      find(columns, field.name).map(_ -> file)
    }
    val name = same.headOption.fold(field.name)(_._1.name)
    same.find(_._1.name != name).foreach { case (other, file) =>
      throw spellings(path :+ name, path :+ other.name, file)
    }
    val inFiles = same.map { case (column, file) => column.dataType -> file }
    field.copy(name = name, dataType = fitted(field.dataType, inFiles, path :+ name))
  })

  private def fitted(
      declared: DataType,
      found: Seq[(DataType, String)],
      path: Seq[String]
  ): DataType = {
    def part(declared: DataType, name: String)(in: PartialFunction[DataType, DataType]): DataType =
      fitted(declared, found.map { case (whole, file) => in(whole) -> file }, path :+ name)
    def differs(found: (DataType, String)) = ConversionError.types(
      table,
      path,
      shown(declared) -> "the catalog",
      shown(found._1) -> s"the file ${found._2}"
    )
    found.find { case (inFile, _) => !isSameKind(declared, inFile) }.foreach(f => throw differs(f))
    declared match {
      case struct: StructType =>
        fitted(struct, found.map { case (t, file) => t.asInstanceOf[StructType] -> file }, path)
      case array: ArrayType =>
        array.copy(elementType = part(array.elementType, Element) { case a: ArrayType =>
          a.elementType
        })
      case map: MapType =>
        map.copy(
          keyType = part(map.keyType, Key) { case m: MapType => m.keyType },
          valueType = part(map.valueType, Value) { case m: MapType => m.valueType }
        )
      case leaf =>
        found.find { case (inFile, _) => !isReadAs(inFile, leaf) }.foreach(f => throw differs(f))
        leaf
    }
  }

  /** The same columns with the narrower types of files as type changes. */
  private def withTypeChanges(merged: StructType): StructType = changed(merged, Nil)

  private def changed(struct: StructType, path: Seq[String]): StructType =
    StructType(struct.map { field =>
      val here = path :+ field.name
      val dataType = nested(field.dataType, here)
      val changes = changesBelow(field.dataType, here, Nil)
      val metadata =
        if (changes.isEmpty) field.metadata
        else
          new MetadataBuilder().withMetadata(field.metadata)
            .putMetadataArray(TypeChange.Key, changes.toArray).build()
      field.copy(dataType = dataType, metadata = metadata)
    })

  private def nested(dataType: DataType, path: Seq[String]): DataType = dataType match {
    case struct: StructType => changed(struct, path)
    case array: ArrayType => array.copy(elementType = nested(array.elementType, path :+ Element))
    case map: MapType =>
      map.copy(
        keyType = nested(map.keyType, path :+ Key),
        valueType = nested(map.valueType, path :+ Value)
      )
    case leaf => leaf
  }

  /** @param below the path from the field to the type */
  private def changesBelow(
      dataType: DataType,
      path: Seq[String],
      below: Seq[String]
  ): Seq[Metadata] = dataType match {
    case _: StructType => Nil
    case ArrayType(element, _) => changesBelow(element, path :+ Element, below :+ Element)
    case MapType(key, value, _) =>
      changesBelow(key, path :+ Key, below :+ Key) ++
        changesBelow(value, path :+ Value, below :+ Value)
    case leaf =>
      files.flatMap(file => typeAt(file.columns, path)).distinct
        .filter(narrower => TypeChange.widens(narrower, leaf) && narrower != leaf)
        .map { narrower =>
          val change = new MetadataBuilder()
            .putString("toType", jsonName(leaf))
            .putString("fromType", jsonName(narrower))
          if (below.nonEmpty) change.putString("fieldPath", below.mkString("."))
          change.build()
        }
  }

  /** The error for a type of a file that does not fit to an earlier one. */
  private def types(path: Seq[String], found: DataType, file: String) = {
    val before = files.flatMap(f => typeAt(f.columns, path).map(_ -> f.file))
    val (other, otherFile) = before
      .find { case (dataType, _) => widest(dataType, found).isEmpty }
      .getOrElse(before.head)
    ConversionError.types(
      table,
      path,
      shown(other) -> s"the file $otherFile",
      shown(found) -> s"the file $file"
    )
  }

  private def spellings(path: Seq[String], other: Seq[String], file: String) = {
    val first = files.find(f => typeAt(f.columns, path).isDefined).fold("")(_.file)
    ConversionError.spellings(table, path -> first, other -> file)
  }
}

private[convert] object MergedSchema {
  private val Element = "element"
  private val Key = "key"
  private val Value = "value"

  def find(struct: StructType, name: String): Option[StructField] = {
    val wanted = folded(name)
    struct.find(field => folded(field.name) == wanted)
  }

  /** The type at a path of exact names, through arrays and maps, too. */
  def typeAt(dataType: DataType, path: Seq[String]): Option[DataType] = (path, dataType) match {
    case (Seq(), found) => Some(found)
    case (name +: rest, struct: StructType) =>
      struct.find(_.name == name).flatMap(field => typeAt(field.dataType, rest))
    case (Element +: rest, ArrayType(element, _)) => typeAt(element, rest)
    case (Key +: rest, MapType(key, _, _)) => typeAt(key, rest)
    case (Value +: rest, MapType(_, value, _)) => typeAt(value, rest)
    case _ => None
  }

  /** The narrowest type as which readers read both. */
  private def widest(one: DataType, other: DataType): Option[DataType] = {
    def reads(from: DataType, to: DataType) = from == to || TypeChange.widens(from, to)
    (Seq(one, other) ++ decimalOf(one, other) :+ DoubleType)
      .find(wide => reads(one, wide) && reads(other, wide))
  }

  private def decimalOf(one: DataType, other: DataType): Option[DecimalType] =
    (digits(one), digits(other)) match {
      case (Some((whole, scale)), Some((otherWhole, otherScale)))
          if one.isInstanceOf[DecimalType] || other.isInstanceOf[DecimalType] =>
        val wide = scale.max(otherScale)
        val precision = whole.max(otherWhole) + wide
        Option.when(precision <= DecimalType.MAX_PRECISION)(DecimalType(precision, wide))
      case _ => None
    }

  /** The digits before and after the decimal point. */
  private def digits(dataType: DataType): Option[(Int, Int)] = dataType match {
    case decimal: DecimalType => Some((decimal.precision - decimal.scale, decimal.scale))
    case ByteType | ShortType | IntegerType => Some((10, 0))
    case LongType => Some((20, 0))
    case _ => None
  }

  private def isSameKind(one: DataType, other: DataType): Boolean = (one, other) match {
    case (_: StructType, _: StructType) | (_: ArrayType, _: ArrayType) | (_: MapType, _: MapType) =>
      true
    case (_: StructType | _: ArrayType | _: MapType, _) => false
    case (_, _: StructType | _: ArrayType | _: MapType) => false
    case _ => true
  }

  /** Whether Spark reads a column of a file as the type that the catalog declares. */
  private def isReadAs(inFile: DataType, declared: DataType): Boolean = (inFile, declared) match {
    case (one, other) if one == other || TypeChange.widens(one, other) => true
    case (BinaryType | StringType, _: StringType | _: CharType | _: VarcharType) => true
    case (TimestampNTZType, TimestampType) => true
    case _ => false
  }

  private def shown(dataType: DataType): String = dataType.sql

  /** A type without parts as in the JSON of a schema. */
  private def jsonName(dataType: DataType): String =
    dataType.json.stripPrefix("\"").stripSuffix("\"")
}
