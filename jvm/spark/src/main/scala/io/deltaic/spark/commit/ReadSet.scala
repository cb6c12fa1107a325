package io.deltaic.spark.commit

import io.deltaic.protocol.{AddFile, RemoveFile}

/** What a transaction has read, for conflict checks. */
private[spark] trait ReadSet {

  /** Whether nothing was read, so that no other commit affects what was written. */
  def isEmpty: Boolean

  /** Whether the whole table was read, so that any change to it conflicts. */
  def wholeTable: Boolean

  /**
   * The first of `added` that may hold a row that this transaction would have read, according to its
   * partition values and statistics.
   */
  def firstMatching(added: Seq[AddFile]): Option[AddFile]

  /** As [[firstMatching]], but checks the rows themselves: this may read files. */
  def firstHolding(added: Seq[AddFile]): Option[AddFile] = firstMatching(added)

  /** The first of `removed` that this transaction has read and depends on. */
  def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile]

  /** As [[firstRead]], but checks the rows themselves: this may read files. */
  def firstDeleted(deleted: Seq[ConcurrentlyDeletedRows]): Option[RemoveFile] =
    firstRead(deleted.map(_.remove))
}

private[spark] object ReadSet {

  /** The read set of a blind append. */
  val nothing: ReadSet = new ReadSet {
    override def isEmpty: Boolean = true
    override def wholeTable: Boolean = false
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] = None
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] = None
  }

  /** The read set of an overwrite, which replaces every file. */
  val everything: ReadSet = new ReadSet {
    override def isEmpty: Boolean = false
    override def wholeTable: Boolean = true
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] = added.headOption
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] = removed.headOption
  }

  /** The read set of a transaction that has read both. */
  def union(left: ReadSet, right: ReadSet): ReadSet = new ReadSet {
    override def isEmpty: Boolean = left.isEmpty && right.isEmpty
    override def wholeTable: Boolean = left.wholeTable || right.wholeTable
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
      left.firstMatching(added).orElse(right.firstMatching(added))
    override def firstHolding(added: Seq[AddFile]): Option[AddFile] =
      left.firstHolding(added).orElse(right.firstHolding(added))
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
      left.firstRead(removed).orElse(right.firstRead(removed))
    override def firstDeleted(deleted: Seq[ConcurrentlyDeletedRows]): Option[RemoveFile] =
      left.firstDeleted(deleted).orElse(right.firstDeleted(deleted))
  }
}
