package io.deltaic.spark.bridge

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.protocol.{AddCdcFile, AddFile, DeltaicException, RemoveFile}

/**
 * The files a commit removes and adds; they stay in the JVM, however many.
 *
 * @param changeFiles if there are any, all that a change data feed has of the commit
 */
private[spark] final case class FileChanges(
    removes: Seq[RemoveFile] = Nil,
    adds: Seq[AddFile] = Nil,
    changeFiles: Seq[AddCdcFile] = Nil
) {

  /** Counts, taken from the actions alone, that operation metrics are derived from. */
  def summary: ObjectNode = {
    val removedPaths = removes.iterator.map(_.path).toSet
    // A file that is removed and added under the same path only changed its deletion vector.
    val (kept, newFiles) = adds.partition(add => removedPaths(add.path))
    val keptPaths = kept.iterator.map(_.path).toSet
    val goneFiles = removes.filterNot(remove => keptPaths(remove.path))
    val oldVectors = removes.filter(_.deletionVector.isDefined).map(_.path).toSet
    val newVectors = adds.filter(_.deletionVector.isDefined).map(_.path).toSet
    Json.obj(
      "numAdded" -> newFiles.size,
      "addedBytes" -> newFiles.map(_.sizeBytes).sum,
      "addedRows" -> newFiles.flatMap(FileChanges.rows).sum,
      "numRemoved" -> goneFiles.size,
      "removedBytes" -> goneFiles.flatMap(_.sizeBytes).sum,
      "numDeletionVectorsAdded" -> newVectors.size,
      "numDeletionVectorsRemoved" -> oldVectors.size,
      "numDeletionVectorsUpdated" -> newVectors.intersect(oldVectors).size,
      "numChangeFiles" -> changeFiles.size,
      "freshRows" -> adds.filter(_.baseRowId.isEmpty).flatMap(FileChanges.rows).sum,
      "dataChange" -> (adds.exists(_.dataChange) || removes.exists(_.dataChange))
    )
  }
}

private[spark] object FileChanges {

  /**
   * Files as a commit on a table that gives row ids adds them: those that have no ids yet get theirs,
   * one after the other (Protocol § Writer Requirements for Row Tracking). The others were in the
   * table before, under another deletion vector, and keep them.
   *
   * @param firstRowId the first row id that no file has
   * @param version the version that the commit becomes
   */
  def withRowIds(
      table: String,
      adds: Seq[AddFile],
      firstRowId: Long,
      version: Long
  ): Seq[AddFile] = {
    var next = firstRowId
    adds.map {
      case known if known.baseRowId.isDefined => known
      case add =>
        val count = rows(add).getOrElse(
          throw DeltaicException(
            "DELTAIC_ROW_COUNT_UNKNOWN",
            Map("table" -> table, "file" -> add.path)
          )
        )
        val numbered = add.copy(baseRowId = Some(next), defaultRowCommitVersion = Some(version))
        next += count
        numbered
    }
  }

  /** Rows in the file that are not deleted. */
  def liveRows(add: AddFile): Option[Long] =
    rows(add).map(_ - add.deletionVector.fold(0L)(_.cardinality))

  /**
   * `numRecords` of a file's statistics: rows in the file, deleted ones included. Statistics that
   * cannot be read are as good as none.
   */
  def rows(add: AddFile): Option[Long] =
    add.stats
      .flatMap(Json.tryParse)
      .flatMap(stats => Option(stats.get("numRecords")))
      .filter(_.canConvertToLong)
      .map(_.longValue)
}
