package io.deltaic.spark.bridge

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.changes.RowSelection

/**
 * What a commit that won the race has taken from a file.
 *
 * @param remove the file as that commit found it, which need not be as this one has read it
 * @param left what it left of the file, if anything
 */
private[spark] final case class TakenRows(remove: RemoveFile, left: Option[AddFile]) {

  /**
   * The rows that are gone of those that were read: winners before this one may have taken some of them,
   * or given back others.
   *
   * @param read the file as it was read
   * @return none if all of them are there
   */
  def from(read: AddFile): Option[RowSelection] = left match {
    case None => Some(RowSelection.AllBut(read.deletionVector))
    case Some(file) =>
      file.deletionVector.filterNot(now => read.deletionVector.exists(isSame(_, now)))
        .map(RowSelection.Only(_, read.deletionVector))
  }

  private def isSame(
      before: DeletionVectorDescriptor,
      now: DeletionVectorDescriptor
  ): Boolean = before.uniqueId == now.uniqueId
}

private[spark] object TakenRows {

  /** @param canonical makes one of the ways to spell a path */
  def in(
      removes: Seq[RemoveFile],
      adds: Seq[AddFile],
      canonical: String => String
  ): Seq[TakenRows] = {
    val left = adds.iterator.map(add => canonical(add.path) -> add).toMap
    removes.map(remove => TakenRows(remove, left.get(canonical(remove.path))))
  }
}
