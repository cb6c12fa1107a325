package io.deltaic.spark.bridge

import io.deltaic.protocol.{AddFile, RemoveFile}

/** What a transaction has read, as far as a conflict check can ask for it. */
private[spark] trait ReadSet {

  /** Whether nothing was read, so that no other commit can matter to what was written. */
  def isEmpty: Boolean

  /** Whether everything in the table was read, so that any change to it matters. */
  def wholeTable: Boolean

  /**
   * The first of `added` that could hold a row which this transaction would have read, by what the log
   * says of it.
   */
  def firstMatching(added: Seq[AddFile]): Option[AddFile]

  /** The same, where that says yes, by the rows themselves: this may read files. */
  def firstHolding(added: Seq[AddFile]): Option[AddFile] = firstMatching(added)

  /** The first of `removed` that this transaction has read, and whose loss would matter to it. */
  def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile]

  /** The same, where that says yes, by the rows themselves: this may read files. */
  def firstEnded(taken: Seq[TakenRows]): Option[RemoveFile] = firstRead(taken.map(_.remove))
}

private[spark] object ReadSet {

  /** Of a blind append. */
  val nothing: ReadSet = new ReadSet {
    override def isEmpty: Boolean = true
    override def wholeTable: Boolean = false
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] = None
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] = None
  }

  /** Of an overwrite, which replaces whatever it found. */
  val everything: ReadSet = new ReadSet {
    override def isEmpty: Boolean = false
    override def wholeTable: Boolean = true
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] = added.headOption
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] = removed.headOption
  }

  /** Of a transaction that has read what each of two has read. */
  def union(left: ReadSet, right: ReadSet): ReadSet = new ReadSet {
    override def isEmpty: Boolean = left.isEmpty && right.isEmpty
    override def wholeTable: Boolean = left.wholeTable || right.wholeTable
    override def firstMatching(added: Seq[AddFile]): Option[AddFile] =
      left.firstMatching(added).orElse(right.firstMatching(added))
    override def firstHolding(added: Seq[AddFile]): Option[AddFile] =
      left.firstHolding(added).orElse(right.firstHolding(added))
    override def firstRead(removed: Seq[RemoveFile]): Option[RemoveFile] =
      left.firstRead(removed).orElse(right.firstRead(removed))
    override def firstEnded(taken: Seq[TakenRows]): Option[RemoveFile] =
      left.firstEnded(taken).orElse(right.firstEnded(taken))
  }
}
