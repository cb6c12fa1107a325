package io.deltaic.spark.bridge

/**
 * Says of a commit that the files it removes are those it ended rows of, so that it can be told from
 * their deletion vectors which rows these are.
 *
 * @param restEnded whether all rows are gone of a file that is removed and not added again; else they
 *   may have been copied elsewhere
 * @param randomPrefixLength of the paths of deletion vectors
 * @param maxVectorFileBytes where a file of them ends at the latest
 * @param inlineBytes up to which size a vector that was in the log stays there
 */
private[spark] final case class RowEnds(
    restEnded: Boolean,
    randomPrefixLength: Int,
    maxVectorFileBytes: Long,
    inlineBytes: Long
)
