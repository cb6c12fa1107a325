package io.deltaic.replay

/**
 * What files of a table add up to.
 *
 * @param deletionVectors how many of the files have one
 * @param deletedRecords how many rows the vectors mark
 */
private[deltaic] final case class FileCounts(
    files: Long,
    sizeBytes: Long,
    deletionVectors: Long,
    deletedRecords: Long
) {

  def +(more: FileCounts): FileCounts = FileCounts(
    files + more.files,
    sizeBytes + more.sizeBytes,
    deletionVectors + more.deletionVectors,
    deletedRecords + more.deletedRecords
  )

  def size: TableSize = TableSize(files, sizeBytes)
}

private[deltaic] object FileCounts {
  val none: FileCounts = FileCounts(0, 0, 0, 0)
}
