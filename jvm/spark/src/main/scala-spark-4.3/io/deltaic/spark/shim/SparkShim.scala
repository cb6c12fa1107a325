package io.deltaic.spark.shim

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.{ParserInterface, SqlStatementSplitResult}
import org.apache.spark.unsafe.types.TimestampNanosVal

/** The versions of Spark that this shim, and so the jar, is for. */
private[spark] object SparkLine {
  val name = "4.3"
}

/** A row without values of the types that Spark 4.3 adds. */
private[spark] trait RowOfKnownTypes { this: InternalRow =>

  def getTimestampLTZNanos(ordinal: Int): TimestampNanosVal = noNanoseconds(ordinal)
  def getTimestampNTZNanos(ordinal: Int): TimestampNanosVal = noNanoseconds(ordinal)

  private def noNanoseconds(ordinal: Int): Nothing =
    throw new UnsupportedOperationException(s"field $ordinal has no nanoseconds")
}

/** A parser that leaves the methods that Spark 4.3 adds to another one. */
private[spark] trait DelegatingParser { this: ParserInterface =>
  protected def spark: ParserInterface

  def splitStatements(sqlText: String): SqlStatementSplitResult = spark.splitStatements(sqlText)
}
