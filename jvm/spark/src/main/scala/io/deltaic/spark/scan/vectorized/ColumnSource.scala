package io.deltaic.spark.scan.vectorized

/** Where the values of a returned column, or of a field of `_metadata`, come from. */
private[scan] sealed trait ColumnSource {

  /** Whether the values depend on where a row is in its file. */
  def needsPosition: Boolean = false
}

private[scan] object ColumnSource {

  /** A column of the data file, by its ordinal among the columns requested from the Parquet reader. */
  final case class Stored(ordinal: Int) extends ColumnSource

  /** The same value for each row of a split, by its ordinal among the split's constants. */
  final case class Constant(ordinal: Int) extends ColumnSource

  /** Null in each row. */
  case object Nulls extends ColumnSource

  /** The row's position in its file. */
  case object Position extends ColumnSource {
    override def needsPosition: Boolean = true
  }

  /** The row's position, counted from a constant that is not null. */
  final case class PositionFrom(base: Constant) extends ColumnSource {
    override def needsPosition: Boolean = true
  }

  /** The values of one source, or those of another where they are null. */
  final case class FirstNonNull(stored: Stored, default: ColumnSource) extends ColumnSource {
    override def needsPosition: Boolean = default.needsPosition
  }

  /** A struct that is never null. */
  final case class Struct(fields: Seq[ColumnSource]) extends ColumnSource {
    override def needsPosition: Boolean = fields.exists(_.needsPosition)
  }
}
