package io.deltaic.spark.shim

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.parser.ParserInterface

/** A row without values of the types that later versions of Spark add. */
private[spark] trait RowOfKnownTypes { this: InternalRow => }

/** A parser that leaves the methods that later versions of Spark add to another one. */
private[spark] trait DelegatingParser { this: ParserInterface =>
  protected def spark: ParserInterface
}
