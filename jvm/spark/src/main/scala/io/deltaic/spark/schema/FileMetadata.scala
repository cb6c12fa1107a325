package io.deltaic.spark.schema

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.deltaic.FileMetadataInternals
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.types.{DataType, LongType, StructField, StructType}

import io.deltaic.protocol.{AddFile, LogPath}

/**
 * The column `_metadata`: the file metadata of Spark's file sources and the row-tracking fields of
 * a row, under delta-spark's names.
 */
private[spark] object FileMetadata {

  val Name = "_metadata"

  val RowIndex = "row_index"
  val RowId = "row_id"
  val BaseRowId = "base_row_id"
  val DefaultRowCommitVersion = "default_row_commit_version"
  val RowCommitVersion = "row_commit_version"

  /** In delta-spark's order. Fields of row tracking exist only where it is enabled. */
  def struct(rowTracking: Option[RowTracking]): StructType = {
    val ofRows = RowIndex +: rowTracking.toSeq.flatMap { _ =>
      Seq(RowId, BaseRowId, DefaultRowCommitVersion, RowCommitVersion)
    }
    StructType(
      FileMetadataInternals.fields ++ ofRows.map(StructField(_, LongType, nullable = false))
    )
  }

  def column(rowTracking: Option[RowTracking]): MetadataColumn = new MetadataColumn {
    override def name: String = Name
    override def dataType: DataType = struct(rowTracking)
    override def isNullable: Boolean = false
    override def comment: String = "metadata of the row's data file"
  }

  /**
   * Whether a column of a scan is this one. Where the table has a column of the same name, Spark puts
   * underscores before ours, and column pruning preserves nothing but the name.
   */
  def isMetadata(column: String, table: TableSchema): Boolean =
    column.endsWith(Name) && column.stripSuffix(Name).forall(_ == '_') &&
    !table.all.fieldNames.contains(column)

  /** Whether `filter` has the same value for all rows of a file, and can be evaluated from the log. */
  def isFileFilter(filter: Expression, table: TableSchema): Boolean =
    filter.deterministic && !SubqueryExpression.hasSubquery(filter) &&
    filter.references.nonEmpty &&
    filter.references.forall(a => isMetadata(a.name, table)) &&
    bound(filter).references.isEmpty

  /**
   * The files that may have rows for which all filters are true. A filter on a file size that the
   * log does not store is left to the scan, which reads the size from the file system.
   *
   * @param filters such that [[isFileFilter]]
   */
  def select(
      table: Path,
      files: IndexedSeq[AddFile],
      filters: Seq[Expression]
  ): IndexedSeq[AddFile] =
    if (filters.isEmpty) files else files.filter(predicate(table, filters))

  /** Whether the log has the file's size: no data file is empty. */
  def isSizeKnown(file: AddFile): Boolean = file.sizeBytes > 0

  /** Whether [[select]] selects a file. */
  def predicate(table: Path, filters: Seq[Expression]): AddFile => Boolean =
    if (filters.isEmpty) _ => true
    else {
      val all = conjunction(filters)
      val withoutSize = conjunction(filters.filterNot(asksForSize))
      // The error is raised for rows of the file, and only the scan knows whether it has any.
      file =>
        try (if (isSizeKnown(file)) all else withoutSize).eval(constants(table, file))
        catch { case NonFatal(_) => true }
    }

  private def conjunction(filters: Seq[Expression]): BasePredicate =
    Predicate.createInterpreted(filters.map(bound).reduceOption(And(_, _)).getOrElse(TrueLiteral))

  private def asksForSize(filter: Expression): Boolean = filter.exists {
    case field @ GetStructField(_: Attribute, _, _) => nameOf(field) == FileFormat.FILE_SIZE
    case _ => false
  }

  /** These differ between splits of a file, so they cannot be used to select files. */
  private val ofBlocks = Set("file_block_start", "file_block_length")

  private val ofFiles: Seq[StructField] =
    FileMetadataInternals.fields.filterNot(f => ofBlocks(f.name)) ++
      Seq(BaseRowId, DefaultRowCommitVersion).map(StructField(_, LongType))

  /** The filter over a row of [[ofFiles]]; references to anything else stay attributes. */
  private def bound(filter: Expression): Expression = filter.transformDown {
    case field @ GetStructField(_: Attribute, _, _) if ofFiles.exists(_.name == nameOf(field)) =>
      val ordinal = ofFiles.indexWhere(_.name == nameOf(field))
      BoundReference(ordinal, ofFiles(ordinal).dataType, ofFiles(ordinal).nullable)
  }

  private def nameOf(field: GetStructField): String = field.childSchema(field.ordinal).name

  private def constants(table: Path, file: AddFile): InternalRow = {
    val whole = PartitionedFile(
      InternalRow.empty,
      SparkPath.fromPath(LogPath.toAbsolute(table, file.path)),
      0L,
      file.sizeBytes,
      modificationTime = file.modificationTimeMs,
      fileSize = file.sizeBytes
    )
    val tracked = Seq(file.baseRowId, file.defaultRowCommitVersion).map(_.map(Long.box).orNull)
    new JoinedRow(
      FileMetadataInternals.values(whole, ofFiles.dropRight(tracked.length)),
      new GenericInternalRow(tracked.toArray[Any])
    )
  }
}
