package io.deltaic.spark.commit

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.AddFile

/**
 * Set for a commit that removes only the files from which it deletes rows, so that the deleted rows follow
 * from the deletion vectors, or files whose rows it moves to new ones.
 *
 * @param restDeleted whether all rows of a file that is removed and not added again are deleted; else they
 *   may have been copied to other files
 * @param relocatesRows whether it moves the rows of the files that it removes to new ones, which have [[lineage.Lineage]]
 * @param randomPrefixLength of the paths of deletion vectors
 * @param maxVectorFileBytes the maximum size of a file of deletion vectors
 * @param lookup how relocated rows are found that [[lineage.Lineage]] does not describe, if they can be found
 * @param inlineBytes the maximum size of a vector that stays inline in the log if it was so before; 0: none is inline
 */
private[spark] final case class RebaseSettings(
    restDeleted: Boolean,
    randomPrefixLength: Int,
    maxVectorFileBytes: Long,
    inlineBytes: Long,
    relocatesRows: Boolean = false,
    lookup: Option[RowLookup] = None
)

/** Finds rows in the files that they were moved to. */
private[spark] trait RowLookup {

  /**
   * @param in the files that the rows were moved to
   * @return positions in these files, by path; none if some rows are not found
   */
  def find(rows: Seq[RowLookup.RowsInFile], in: Seq[AddFile]): Option[Map[String, DeletionVector]]
}

private[spark] object RowLookup {

  /**
   * Rows of a file before they were moved.
   *
   * @param vector the deletion vector of the file
   * @param positions none for all rows that are not in the vector
   */
  final case class RowsInFile(
      file: AddFile,
      vector: DeletionVector,
      positions: Option[DeletionVector]
  )
}
