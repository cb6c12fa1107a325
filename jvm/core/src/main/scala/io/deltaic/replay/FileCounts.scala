package io.deltaic.replay

/**
 * Totals of the files of a table.
 *
 * @param deletionVectors the number of files that have a deletion vector
 * @param deletedRecords the number of rows that the vectors mark as deleted
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
