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
  def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile]

  /** As [[firstAddedByStatistics]], but checks the rows themselves: this may read files. */
  def firstAddedByRows(added: Seq[AddFile]): Option[AddFile] = firstAddedByStatistics(added)

  /** The first of `removed` that this transaction has read and depends on. */
  def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile]

  /** As [[firstRemovedByStatistics]], but checks the rows themselves: this may read files. */
  def firstRemovedByRows(deleted: Seq[ConcurrentlyDeletedRows]): Option[RemoveFile] =
    firstRemovedByStatistics(deleted.map(_.remove))
}

private[spark] object ReadSet {

  /** The read set of a blind append. */
  val nothing: ReadSet = new ReadSet {
    override def isEmpty: Boolean = true
    override def wholeTable: Boolean = false
    override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] = None
    override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] = None
  }

  /** The read set of an overwrite, which replaces every file. */
  val everything: ReadSet = new ReadSet {
    override def isEmpty: Boolean = false
    override def wholeTable: Boolean = true
    override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] = added.headOption
    override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
      removed.headOption
  }

  /** The read set of a transaction that has read both. */
  def union(left: ReadSet, right: ReadSet): ReadSet = new ReadSet {
    override def isEmpty: Boolean = left.isEmpty && right.isEmpty
    override def wholeTable: Boolean = left.wholeTable || right.wholeTable
    override def firstAddedByStatistics(added: Seq[AddFile]): Option[AddFile] =
      left.firstAddedByStatistics(added).orElse(right.firstAddedByStatistics(added))
    override def firstAddedByRows(added: Seq[AddFile]): Option[AddFile] =
      left.firstAddedByRows(added).orElse(right.firstAddedByRows(added))
    override def firstRemovedByStatistics(removed: Seq[RemoveFile]): Option[RemoveFile] =
      left.firstRemovedByStatistics(removed).orElse(right.firstRemovedByStatistics(removed))
    override def firstRemovedByRows(deleted: Seq[ConcurrentlyDeletedRows]): Option[RemoveFile] =
      left.firstRemovedByRows(deleted).orElse(right.firstRemovedByRows(deleted))
  }
}
