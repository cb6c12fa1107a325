package io.deltaic.spark.scan.files

import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * Predicates that are true for every row of a scan's result; used to skip files, never to filter rows.
 *
 * @param ofRows on columns of the table
 * @param ofFiles on `_metadata`, such that `FileMetadata.isFileFilter`
 */
private[spark] final case class ScanFilters(
    ofRows: Seq[Expression],
    ofFiles: Seq[Expression] = Nil
) {
  def all: Seq[Expression] = ofRows ++ ofFiles

  /** Whether they are the same objects, whose selection of files may be cached. */
  def areSame(other: ScanFilters): Boolean =
    (ofRows eq other.ofRows) && (ofFiles eq other.ofFiles)
}

private[spark] object ScanFilters {
  val none: ScanFilters = ScanFilters(Nil)
}
