package io.deltaic.spark.schema

import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.types._

import io.deltaic.protocol.DeltaicException

/** Rejects schemas whose files would be misread. */
private[spark] object SchemaChecks {

  /**
   * Under column mapping each column has a physical name and, where files are read by it, an id,
   * and neither is shared with a sibling column (Protocol § Column Mapping).
   */
  def requireMapped(table: String, schema: StructType, mapping: ColumnMapping): Unit =
    if (mapping != ColumnMapping.NoMapping)
      eachStruct(schema, Nil) { (struct, path) =>
        requireDistinct(table, struct, path, PhysicalSchema.PhysicalName)(_.getString(_))
        if (mapping == ColumnMapping.ById)
          requireDistinct(table, struct, path, PhysicalSchema.ColumnId)(_.getLong(_))
      }

  /** Each value in column metadata must have the type that the protocol specifies, because it is read as that type. */
  def requireKinds(table: String, schema: StructType): Unit =
    eachStruct(schema, Nil) { (struct, path) =>
      for (field <- struct; (key, (kind, read)) <- kinds if field.metadata.contains(key)) {
        val isOfKind =
          try read(field) != null
          catch {
            // A JSON null stays null in Spark's metadata, which has no method to test for it.
            case _: ClassCastException | _: NoSuchElementException | _: NullPointerException =>
              false
          }
        val column = (path :+ field.name).mkString(".")
        if (!isOfKind) throw TableSchema.invalid(table, s"$key of column $column is not a $kind")
      }
    }

  private val kinds: Map[String, (String, StructField => Any)] = {
    def string(key: String) = key -> ("string", (f: StructField) => f.metadata.getString(key): Any)
    def number(key: String) =
      key -> ("whole number", (f: StructField) => f.metadata.getLong(key): Any)
    def flag(key: String) = key -> ("boolean", (f: StructField) => f.metadata.getBoolean(key): Any)
    def typeChanges = TypeChange.Key ->
      (
        "list of type changes",
        (f: StructField) =>
          {
            val names = TypeChange.of(f).flatMap(c => Seq(c.from, c.to) ++ c.fieldPath)
            if (names.contains(null)) null else names
          }: Any
      )
    Map(
      string(PhysicalSchema.PhysicalName),
      number(PhysicalSchema.ColumnId),
      string(ColumnKeys.CurrentDefault),
      string(ColumnKeys.ExistsDefault),
      string(ColumnKeys.Invariant),
      string(ColumnKeys.GenerationExpression),
      number(ColumnKeys.IdentityStart),
      number(ColumnKeys.IdentityStep),
      number(ColumnKeys.IdentityHighWaterMark),
      flag(ColumnKeys.IdentityAllowExplicitInsert),
      typeChanges
    )
  }

  /** A user's column with the name of a scan's own column would replace it, or be replaced by it. */
  def requireReadableNames(table: String, schema: StructType): Unit =
    requireNames(table, schema.fieldNames.toSeq, ScanColumns.isTaken)

  /** The same for columns that are added to a table. */
  def requireNewNames(table: String, columns: Seq[String]): Unit =
    requireNames(table, columns, ScanColumns.isReserved)

  /** The same for the columns of rows that a statement changes. */
  def requireChangeableNames(table: String, columns: Seq[String], command: Command): Unit =
    requireNames(table, columns, ScanColumns.isTakenBy(command, _))

  private def requireNames(table: String, names: Seq[String], isRefused: String => Boolean): Unit =
    names.find(isRefused).foreach { column =>
      throw DeltaicException(
        "DELTAIC_RESERVED_COLUMN_NAME",
        Map("table" -> table, "column" -> column)
      )
    }

  def requireKnownTypeChanges(table: String, schema: StructType): Unit =
    eachStruct(schema, Nil) { (struct, path) =>
      for {
        field <- struct
        change <- TypeChange.of(field)
        if !change.isSupported
      } throw DeltaicException(
        "DELTAIC_UNSUPPORTED_TYPE_CHANGE",
        Map(
          "table" -> table,
          "column" -> (path :+ field.name).concat(change.fieldPath).mkString("."),
          "from" -> change.from,
          "to" -> change.to
        )
      )
    }

  private def requireDistinct(
      table: String,
      struct: StructType,
      path: Seq[String],
      key: String
  )(read: (Metadata, String) => Any): Unit = {
    val seen = scala.collection.mutable.HashMap.empty[Any, StructField]
    struct.foreach { field =>
      val column = (path :+ field.name).mkString(".")
      if (!field.metadata.contains(key))
        throw TableSchema.invalid(table, s"column $column lacks $key, which column mapping needs")
      val value = read(field.metadata, key)
      seen.put(value, field).foreach { other =>
        throw TableSchema.invalid(table, s"columns ${other.name} and $column share $key $value")
      }
    }
  }

  /** Visits the struct and all nested structs, each with its name path. */
  private def eachStruct(dataType: DataType, path: Seq[String])(
      visit: (StructType, Seq[String]) => Unit
  ): Unit = dataType match {
    case struct: StructType =>
      visit(struct, path)
      struct.foreach(field => eachStruct(field.dataType, path :+ field.name)(visit))
    case array: ArrayType => eachStruct(array.elementType, path :+ "element")(visit)
    case map: MapType =>
      eachStruct(map.keyType, path :+ "key")(visit)
      eachStruct(map.valueType, path :+ "value")(visit)
    case _ => ()
  }
}
