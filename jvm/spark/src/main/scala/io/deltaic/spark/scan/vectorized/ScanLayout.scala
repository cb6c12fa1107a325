package io.deltaic.spark.scan.vectorized

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.deltaic.FileMetadataInternals
import org.apache.spark.sql.deltaic.scan.ParquetScanInternals
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.vectorized.{ColumnVectorUtils, ConstantColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

import io.deltaic.spark.schema.{FileMetadata, RowTracking, ScanColumns}

/**
 * The columns that a scan reads, and how it computes the returned columns from them; the same for batches and for rows.
 *
 * @param output the columns that are returned
 * @param sources where each of them comes from
 * @param stored the columns to read, as the data files name them
 * @param fileConstants the columns whose values the driver sends with each split
 * @param splitConstants further constants, taken from the split itself
 */
private[scan] final case class ScanLayout(
    output: StructType,
    sources: Seq[ColumnSource],
    stored: StructType,
    fileConstants: StructType,
    splitConstants: StructType
) {
  import ColumnSource._

  val needsPositions: Boolean = sources.exists(_.needsPosition)

  /** The columns to request from the row-based reader: it returns positions as an additional last column. */
  def storedWithPositions: StructType =
    if (needsPositions) stored.add(ParquetScanInternals.generatedRowIndex) else stored

  def constantValues(split: PartitionedFile): InternalRow =
    if (splitConstants.isEmpty) split.partitionValues
    else {
      val ofSplit = FileMetadataInternals.values(split, splitConstants.fields.toSeq)
      new JoinedRow(split.partitionValues, ofSplit)
    }

  /**
   * The columns of a batch.
   *
   * @param columns those that the reader fills
   */
  def vectors(
      columns: Int => ColumnVector,
      positions: PositionVector,
      constantValues: InternalRow,
      batchRows: Int
  ): Array[ColumnVector] = {
    def vector(source: ColumnSource, dataType: DataType): ColumnVector = source match {
      case Stored(ordinal) => columns(ordinal)
      case Nulls =>
        val nulls = new ConstantColumnVector(batchRows, dataType)
        nulls.setNull()
        nulls
      case Constant(ordinal) =>
        val constant = new ConstantColumnVector(batchRows, dataType)
        ColumnVectorUtils.populate(constant, constantValues, ordinal)
        constant
      case Position => positions
      case PositionFrom(base) => new OffsetVector(constantValues.getLong(base.ordinal), positions)
      case FirstNonNull(first, default) =>
        new FirstNonNullVector(vector(first, dataType), vector(default, dataType))
      case Struct(fields) =>
        val struct = dataType.asInstanceOf[StructType]
        new StructVector(
          struct,
          fields.zip(struct.fields).map { case (s, field) => vector(s, field.dataType) }.toArray
        )
    }
    sources.zip(output.fields).map { case (source, field) =>
      vector(source, field.dataType)
    }.toArray
  }

  /** The same over a row of the row-based reader, with the constants behind its columns. */
  def expressions: Seq[Expression] = {
    val width = storedWithPositions.length
    def expression(source: ColumnSource, dataType: DataType): Expression = source match {
      case Stored(ordinal) => BoundReference(ordinal, dataType, nullable = true)
      case Nulls => Literal(null, dataType)
      case Constant(ordinal) => BoundReference(width + ordinal, dataType, nullable = true)
      case Position => BoundReference(stored.length, LongType, nullable = false)
      case PositionFrom(base) => Add(expression(base, LongType), expression(Position, LongType))
      case FirstNonNull(first, default) =>
        Coalesce(Seq(expression(first, dataType), expression(default, dataType)))
      case Struct(fields) =>
        CreateNamedStruct(fields.zip(dataType.asInstanceOf[StructType].fields).flatMap {
          case (s, field) => Seq(Literal(field.name), expression(s, field.dataType))
        })
    }
    sources.zip(output.fields).map { case (source, field) => expression(source, field.dataType) }
  }
}

private[scan] object ScanLayout {
  import ColumnSource._

  /**
   * @param data the columns of the table that are in the data files
   * @param physical the same columns, as the data files name them
   * @param computed columns that are neither in the files nor the same for a whole file
   * @param constants columns that are the same for a whole file
   */
  def of(
      data: Seq[StructField],
      physical: StructType,
      computed: Seq[StructField],
      constants: Seq[StructField],
      rowTracking: Option[RowTracking]
  ): ScanLayout = {
    val wanted = computed.flatMap { field =>
      field.dataType match {
        case struct: StructType => struct.fieldNames.toSeq
        case _ => Seq(fieldOf(field.name))
      }
    }
    def tracked(names: String*): Boolean = names.exists(wanted.contains)
    val materialized = rowTracking.toSeq.flatMap { tracking =>
      tracking.rowId.filter(_ => tracked(FileMetadata.RowId)) ++
        tracking.commitVersion.filter(_ => tracked(FileMetadata.RowCommitVersion))
    }
    val ofFiles = constants ++
      Option.when(tracked(FileMetadata.RowId, FileMetadata.BaseRowId))(
        ScanColumns.baseRowIdField
      ) ++
      Option.when(tracked(FileMetadata.RowCommitVersion, FileMetadata.DefaultRowCommitVersion))(
        ScanColumns.defaultRowCommitVersionField
      )
    val ofSplits = FileMetadataInternals.fields.filter(f => wanted.contains(f.name))
    // Files have no void columns (Protocol § Primitive Types).
    val held = physical.filterNot(_.dataType == NullType)
    val stored = StructType(held ++ materialized)
    val dataSources = physical.map { column =>
      if (column.dataType == NullType) Nulls else Stored(held.indexWhere(_ eq column))
    }

    def ofFile(name: String): Constant = Constant(ofFiles.indexWhere(_.name == name))
    def ofSplit(name: String): Constant =
      Constant(ofFiles.length + ofSplits.indexWhere(_.name == name))
    def baseRowId = ofFile(ScanColumns.BaseRowId)
    def commitVersion = ofFile(ScanColumns.DefaultRowCommitVersion)
    def orElse(column: Option[StructField], default: ColumnSource): ColumnSource =
      column.fold(default)(c => FirstNonNull(Stored(stored.fieldIndex(c.name)), default))

    def metadata(name: String): ColumnSource = name match {
      case FileMetadata.RowIndex => Position
      case FileMetadata.RowId => orElse(rowTracking.flatMap(_.rowId), PositionFrom(baseRowId))
      case FileMetadata.BaseRowId => baseRowId
      case FileMetadata.RowCommitVersion =>
        orElse(rowTracking.flatMap(_.commitVersion), commitVersion)
      case FileMetadata.DefaultRowCommitVersion => commitVersion
      case other => ofSplit(other)
    }
    val computedSources = computed.map { field =>
      field.dataType match {
        case struct: StructType => Struct(struct.fieldNames.toSeq.map(metadata))
        case _ => metadata(fieldOf(field.name))
      }
    }
    ScanLayout(
      StructType(data ++ computed ++ constants),
      dataSources ++ computedSources ++ constants.indices.map(Constant(_)),
      stored,
      StructType(ofFiles),
      StructType(ofSplits)
    )
  }

  /** The field of `_metadata` that a flat column is the same as. */
  private def fieldOf(computed: String): String = computed match {
    case ScanColumns.TrackedRowId => FileMetadata.RowId
    case ScanColumns.TrackedCommitVersion => FileMetadata.RowCommitVersion
    case _ => FileMetadata.RowIndex
  }
}
