package io.deltaic.spark.write.files

import org.apache.parquet.schema.PrimitiveType
import org.apache.spark.sql.types.DataType

/** The values of a footer, which depend on who wrote the file. */
private[spark] trait FooterValues {

  /**
   * The smallest or largest value of a column as Spark's own writer stores it; none if it may not be a bound of the
   * values that Spark reads.
   *
   * @param column the column in the file
   */
  def bound(dataType: DataType, column: PrimitiveType, value: Any, isMin: Boolean): Option[Any]
}

private[spark] object FooterValues {

  /** Those of a file that was written here. */
  object OfOurWriter extends FooterValues {
    override def bound(
        dataType: DataType,
        column: PrimitiveType,
        value: Any,
        isMin: Boolean
    ): Option[Any] = Some(value)
  }
}
