package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression}
import org.apache.spark.sql.deltaic.ParquetScanShims
import org.apache.spark.sql.execution.vectorized.{ColumnVectorUtils, ConstantColumnVector}
import org.apache.spark.sql.types.{DataType, LongType, StructField, StructType}
import org.apache.spark.sql.vectorized.ColumnVector

/** Where the values of a column come from that a scan returns. */
private[scan] sealed trait ColumnSource

private[scan] object ColumnSource {

  /** A column of the data file, by its place among those the Parquet reader is asked for. */
  final case class Stored(ordinal: Int) extends ColumnSource

  /** The same value for each row of a split, by its place among the split's constants. */
  final case class Constant(ordinal: Int) extends ColumnSource

  /** The row's position in its file. */
  case object Position extends ColumnSource
}

/**
 * What a scan reads, and how it makes of it what it returns; for batches and for rows.
 *
 * @param output the columns that are returned
 * @param sources where each of them comes from
 * @param stored the columns to read, as the data files name them
 * @param constants the columns whose values the driver sends along with each split
 */
private[scan] final case class ScanLayout(
    output: StructType,
    sources: Seq[ColumnSource],
    stored: StructType,
    constants: StructType
) {
  import ColumnSource._

  val needsPositions: Boolean = sources.contains(Position)

  /** What the row-based reader is asked for: it returns positions as one more column, the last one. */
  def storedWithPositions: StructType =
    if (needsPositions) stored.add(ParquetScanShims.generatedRowIndex) else stored

  /** The columns of a batch. Those that the reader fills are the reader's own. */
  def vectors(
      columns: Int => ColumnVector,
      positions: PositionVector,
      constantValues: InternalRow,
      batchRows: Int
  ): Array[ColumnVector] = {
    def constant(ordinal: Int): ColumnVector = {
      val vector = new ConstantColumnVector(batchRows, constants(ordinal).dataType)
      ColumnVectorUtils.populate(vector, constantValues, ordinal)
      vector
    }
    sources.map {
      case Stored(ordinal) => columns(ordinal)
      case Constant(ordinal) => constant(ordinal)
      case Position => positions
    }.toArray
  }

  /** The same over a row of the row-based reader, with the constants behind its columns. */
  def expressions: Seq[Expression] = {
    val width = storedWithPositions.length
    def column(ordinal: Int, dataType: DataType) = BoundReference(ordinal, dataType, nullable = true)
    sources.zip(output.fields).map {
      case (Stored(ordinal), field) => column(ordinal, field.dataType)
      case (Constant(ordinal), field) => column(width + ordinal, field.dataType)
      case (Position, _) => column(stored.length, LongType)
    }
  }
}

private[scan] object ScanLayout {
  import ColumnSource._

  /**
   * @param data the columns of the table that are in the data files
   * @param physical the same columns, as the data files name them
   */
  def of(
      data: Seq[StructField],
      physical: StructType,
      computed: Seq[StructField],
      constants: Seq[StructField]
  ): ScanLayout = {
    val sources =
      data.indices.map(Stored(_)) ++ computed.map(_ => Position) ++ constants.indices.map(Constant(_))
    ScanLayout(
      StructType(data ++ computed ++ constants),
      sources,
      physical,
      StructType(constants)
    )
  }
}
