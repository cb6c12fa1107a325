package io.deltaic.spark.commit

/**
 * Set for a commit that removes only the files from which it deletes rows, so that the deleted rows follow
 * from the deletion vectors, or files whose rows it moves to new ones.
 *
 * @param restDeleted whether all rows of a file that is removed and not added again are deleted; else they
 *   may have been copied to other files
 * @param movesRows whether it moves the rows of the files that it removes to new ones, which have [[lineage.Lineage]]
 * @param randomPrefixLength of the paths of deletion vectors
 * @param maxVectorFileBytes the maximum size of a file of deletion vectors
 * @param inlineBytes the maximum size of a vector that stays inline in the log if it was so before; 0: none is inline
 */
private[spark] final case class RebaseSettings(
    restDeleted: Boolean,
    randomPrefixLength: Int,
    maxVectorFileBytes: Long,
    inlineBytes: Long,
    movesRows: Boolean = false
)
