package io.deltaic.spark.bridge

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.protocol.{AddFile, RemoveFile}

/** The files a commit removes and adds; they stay in the JVM, however many. */
private[spark] final case class FileChanges(
    removes: Seq[RemoveFile] = Nil,
    adds: Seq[AddFile] = Nil
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
      "dataChange" -> (adds.exists(_.dataChange) || removes.exists(_.dataChange))
    )
  }
}

private[spark] object FileChanges {

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
