package io.deltaic.spark.shim

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.ParserInterface

/** The versions of Spark that this shim, and so the jar, is for. */
private[spark] object SparkLine {
  val name = "4.2"
}

/** A row without values of the types that later versions of Spark add. */
private[spark] trait RowOfKnownTypes { this: InternalRow => }

/** A parser that leaves the methods that later versions of Spark add to another one. */
private[spark] trait DelegatingParser { this: ParserInterface =>
  protected def spark: ParserInterface
}
