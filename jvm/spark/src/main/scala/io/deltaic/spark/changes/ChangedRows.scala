package io.deltaic.spark.changes

import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.dv.DeletionVectorCursor
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.scan.deletionvectors.{
  DeletionVectorConstant,
  DeletionVectorSource,
  RowProbe,
  RowProbeSource
}

/**
 * Finds in the executors the rows of a file that are not part of a change, from a constant that
 * [[ChangedRows.encode]] created for a [[RowSelection]].
 */
private[spark] final case class ChangedRows(vectors: DeletionVectorSource) extends RowProbeSource {

  override def probeClass: Class[ChangedRowsProbe] = classOf[ChangedRowsProbe]

  override def newProbe(): ChangedRowsProbe = new ChangedRowsProbe(vectors)

  /** Whether no row of the file is part of the change. */
  def isEmpty(constant: UTF8String): Boolean =
    constant != null && ChangedRows.open(vectors, constant).isEmpty
}

private[spark] object ChangedRows {

  /** First character of a constant. */
  private val AllBut = '-'
  private val Only = '+'

  /** Between two vectors; neither Z85 nor an encoded path contains it. */
  private val Separator = "\f"

  /** Null if all rows are part of the change. */
  def encode(file: AddFile, rows: RowSelection): UTF8String = rows match {
    case RowSelection.AllBut(None) => null
    case RowSelection.AllBut(Some(hidden)) =>
      UTF8String.fromString(s"$AllBut${vector(file, hidden)}")
    case RowSelection.Only(marked, except) =>
      val strings = (Seq(marked) ++ except).map(vector(file, _).toString)
      UTF8String.fromString(strings.mkString(Only.toString, Separator, ""))
  }

  private def vector(file: AddFile, dv: DeletionVectorDescriptor): UTF8String =
    DeletionVectorConstant.encode(file.copy(deletionVector = Some(dv)))

  private[changes] def open(vectors: DeletionVectorSource, constant: UTF8String): MarkedRows = {
    val string = constant.toString
    val cursors = string.substring(1).split(Separator).map { vector =>
      vectors.open(UTF8String.fromString(vector)).cursor()
    }
    new MarkedRows(cursors.head, cursors.lift(1).orNull, marksHidden = string.head == AllBut)
  }
}

/**
 * The rows that one vector marks and the other, if any, does not mark.
 *
 * @param marksHidden whether these rows are excluded from the change, or are the only ones included
 */
private[changes] final class MarkedRows(
    marked: DeletionVectorCursor,
    except: DeletionVectorCursor,
    val marksHidden: Boolean
) {

  /** The first such row at or after `row`. */
  def next(row: Long): Long = {
    var found = marked.seek(row)
    if (except != null)
      while (found != DeletionVectorCursor.End && except.seek(found) == found)
        found = marked.seek(found + 1)
    found
  }

  def isEmpty: Boolean = !marksHidden && next(0L) == DeletionVectorCursor.End
}

/**
 * Checks whether rows of a scan are not part of the change, in the order in which the scan reads
 * them. Between two marked rows the result is the same, so most rows cost one comparison of
 * references and two of longs.
 *
 * Not thread safe: one probe belongs to one task.
 */
private[spark] final class ChangedRowsProbe(vectors: DeletionVectorSource) extends RowProbe {
  private var lastReference: UTF8String = _
  private var lastValue: UTF8String = _
  private var marks: MarkedRows = _
  private var from = 0L
  private var until = 0L

  override def isDeleted(constant: UTF8String, rowIndex: Long): Boolean = {
    if (constant ne lastReference) switchTo(constant)
    if (rowIndex >= from && rowIndex < until) !marks.marksHidden else seek(rowIndex)
  }

  private def switchTo(constant: UTF8String): Unit = {
    if (!constant.equals(lastValue)) {
      lastValue = constant.clone()
      marks = ChangedRows.open(vectors, lastValue)
      from = 0L
      until = 0L
    }
    lastReference = constant
  }

  private def seek(rowIndex: Long): Boolean = {
    val next = marks.next(rowIndex)
    from = rowIndex
    until = next
    (next == rowIndex) == marks.marksHidden
  }
}
