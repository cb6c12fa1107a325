package io.deltaic.spark.commit

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.changes.RowSelection

/**
 * The rows of a file that a winning commit has deleted.
 *
 * @param remove the file as that commit found it, which may differ from how this transaction has read it
 * @param left the file as that commit left it, if any of its rows remain
 */
private[spark] final case class ConcurrentlyDeletedRows(remove: RemoveFile, left: Option[AddFile]) {

  /**
   * The deleted rows among those that were read. Earlier winning commits may have deleted some of them too,
   * or restored others.
   *
   * @param read the file as it was read
   * @return none if no row that was read is deleted
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

private[spark] object ConcurrentlyDeletedRows {

  /** @param canonical maps a path to its canonical spelling */
  def in(
      removes: Seq[RemoveFile],
      adds: Seq[AddFile],
      canonical: String => String
  ): Seq[ConcurrentlyDeletedRows] = {
    val left = adds.iterator.map(add => canonical(add.path) -> add).toMap
    removes.map(remove => ConcurrentlyDeletedRows(remove, left.get(canonical(remove.path))))
  }
}
