package io.deltaic.spark.scan

import scala.jdk.CollectionConverters._

import org.apache.parquet.schema.{MessageType, Type}
import org.apache.spark.sql.deltaic.scan.FileInspection
import org.apache.spark.sql.types._

import io.deltaic.protocol.{ColumnNames, DeltaicException}
import io.deltaic.spark.schema.{ColumnMapping, PhysicalSchema, TableSchema}

/**
 * Rejects a data file that has none of the expected columns: every row of it would be read as nulls
 * (docs/decisions/0036). It checks the names in a file's footer, once per file, and never reads rows.
 *
 * A file without the requested columns may have other columns of the table. A file that has no column of the table
 * may be older than all of them, but only under column mapping: without it, columns are not dropped while files stay.
 *
 * @param version of the table
 * @param requested the columns that a query requests, except void ones, which no file has
 * @param columns all columns of the table, including its partition columns
 */
private[scan] final class ExpectedColumns(
    table: String,
    version: Long,
    mapping: ColumnMapping,
    requested: Seq[ExpectedColumn],
    columns: Seq[ExpectedColumn]
) extends FileInspection {

  override def inspect(file: String, content: MessageType): Unit =
    if (requested.nonEmpty && content.getFieldCount > 0 && !requested.exists(isIn(_, content))) {
      reasonToRefuse(content).foreach { reason =>
        throw DeltaicException(
          "DELTAIC_DATA_FILE_WITHOUT_COLUMNS",
          Map(
            "table" -> table,
            "version" -> version.toString,
            "file" -> file,
            "reason" -> reason,
            "found" -> content.getFields.asScala.map(described).mkString(", "),
            "expected" -> requested.map(_.describedBy(mapping)).mkString(", ")
          )
        )
      }
    }

  private def isIn(column: ExpectedColumn, content: MessageType): Boolean = mapping match {
    case ColumnMapping.ById => content.getFields.asScala.exists(idOf(_) == column.id)
    case _ => content.containsField(column.physicalName)
  }

  /** Only for files that have none of the requested columns by their exact names. */
  private def reasonToRefuse(content: MessageType): Option[String] = {
    val fields = content.getFields.asScala.toSeq
    lazy val names = fields.map(field => ColumnNames.folded(field.getName)).toSet
    mapping match {
      case ColumnMapping.ById =>
        Option.when(fields.forall(_.getId == null))(
          "in column mapping mode id, files have field ids"
        )
      case _ if columns.exists(column => names(ColumnNames.folded(column.physicalName))) => None
      case ColumnMapping.NoMapping => Some("no column of the table is in it")
      case ColumnMapping.ByName =>
        Option.when(fields.exists(isMisnamed(_, ColumnCount.of(content))))(
          "it names columns as the table does, and not by their physical names"
        )
    }
  }

  /**
   * Whether a file has a column of the table under its logical name. The column may also be a
   * dropped column of that name, in a file written before column mapping was enabled. Such files
   * have no field ids, and their columns were assigned the lowest ids: the id of a column added
   * later is higher than the number of columns in the file.
   */
  private def isMisnamed(field: Type, columnsInFile: Int): Boolean =
    columns.exists { column =>
      ColumnNames.folded(column.logicalName) == ColumnNames.folded(field.getName) &&
      column.id.exists(id => idOf(field).fold(id <= columnsInFile)(_ == id))
    }

  private def idOf(field: Type): Option[Long] = Option(field.getId).map(_.intValue.toLong)

  private def described(field: Type): String =
    idOf(field).fold(field.getName)(id => s"${field.getName} (field id $id)")
}

/** A column of a table, with its logical name, physical name and field id. */
private[scan] final case class ExpectedColumn(
    logicalName: String,
    physicalName: String,
    id: Option[Long]
) {

  def describedBy(mapping: ColumnMapping): String = mapping match {
    case ColumnMapping.NoMapping => logicalName
    case ColumnMapping.ByName => s"$logicalName as $physicalName"
    case ColumnMapping.ById => s"$logicalName with the field id ${id.getOrElse("")}"
  }
}

private[scan] object ExpectedColumns {

  /** @param requested the data columns that a query requests */
  def of(
      table: String,
      version: Long,
      schema: TableSchema,
      requested: Seq[StructField]
  ): ExpectedColumns = {
    val columns = schema.stored.map { field =>
      ExpectedColumn(
        field.name,
        PhysicalSchema.nameOf(field, schema.mapping != ColumnMapping.NoMapping),
        Option.when(field.metadata.contains(PhysicalSchema.ColumnId))(
          field.metadata.getLong(PhysicalSchema.ColumnId)
        )
      )
    }
    val names = requested.map(_.name).toSet
    new ExpectedColumns(
      table,
      version,
      schema.mapping,
      schema.stored.zip(columns).collect {
        case (field, column) if names(field.name) && isInFiles(field.dataType) => column
      },
      columns
    )
  }

  /** Files cannot store void columns (Protocol § Primitive Types), or structs of only void fields. */
  private def isInFiles(dataType: DataType): Boolean = dataType match {
    case NullType => false
    case struct: StructType => struct.exists(field => isInFiles(field.dataType))
    case array: ArrayType => isInFiles(array.elementType)
    case map: MapType => isInFiles(map.keyType) && isInFiles(map.valueType)
    case _ => true
  }
}
