package io.deltaic.spark.commit.lineage

import scala.collection.mutable

import io.deltaic.protocol.{AddFile, RemoveFile}

/**
 * The parts of winning compactions that one commit reverts (docs/decisions/0049).
 *
 * @param canonical paths are compared by it: writers differ in how they spell them
 * @param numRecords of statistics
 */
private[spark] final class RevertedCompactions(
    canonical: String => String,
    numRecords: Option[String] => Option[Long]
) {
  import RevertedCompactions._

  private val parts = mutable.ArrayBuffer.empty[Paths]

  /**
   * Reverts what a winning compaction did to files of this commit.
   *
   * @param ours what this commit removes
   * @param deletionTimestampMs of the compacted files
   * @param modificationTimeMs of the files that are added again
   * @return compacted files to be removed, and inputs to be added that this commit does not remove itself; or none if it
   *   cannot be reverted
   */
  def revert(
      ours: Seq[RemoveFile],
      adds: Seq[AddFile],
      removes: Seq[RemoveFile],
      deletionTimestampMs: Long,
      modificationTimeMs: Long
  ): Option[(Seq[RemoveFile], Seq[AddFile])] = {
    val own = paths(ours.map(_.path))
    CompactionPart
      .of(removes.toIndexedSeq, adds, remove => own(canonical(remove.path)), numRecords)
      .map { found =>
        synchronized {
          parts ++= found.map { part =>
            Paths(paths(part.outputs.map(_.path)), paths(part.inputs.map(_.path)), own)
          }
        }
        val outputs =
          found.flatMap(_.outputs).map(_.remove(deletionTimestampMs, dataChange = false))
        val inputs = found.flatMap(_.restoredInputs(modificationTimeMs))
        (outputs, inputs.filterNot(add => own(canonical(add.path))))
      }
  }

  /** Forgets the parts that a winning commit has reverted, too: for those, there is nothing left to do. */
  def revertedBy(adds: Seq[AddFile], removes: Seq[RemoveFile]): AlreadyReverted = synchronized {
    val gone = paths(removes.filterNot(_.dataChange).map(_.path))
    val again = paths(adds.filterNot(_.dataChange).map(_.path))
    val done = parts.filter(part => part.outputs.forall(gone) && part.inputs.exists(again)).toVector
    parts --= done
    AlreadyReverted(
      outputs = done.flatMap(_.outputs).toSet,
      others = done.flatMap(part => part.inputs -- part.ours).toSet,
      again = done.flatMap(_.inputs).toSet.intersect(again)
    )
  }

  /** Whether a file is removed since a compaction that added it is reverted. */
  def isOutput(path: String): Boolean = synchronized(parts.exists(_.outputs(canonical(path))))

  /** Whether a file is added again, unchanged, since a compaction that removed it is reverted. */
  def isAddedAgain(path: String): Boolean = synchronized {
    val file = canonical(path)
    parts.exists(part => part.inputs(file) && !part.ours(file))
  }

  /**
   * The first file that this commit removes although a winning commit has removed it. A commit with such a file would add
   * rows for a second time. Files that were reverted are in the table again.
   *
   * @param ours what this commit removes
   */
  def firstRemovedConcurrently(
      ours: Seq[RemoveFile],
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Option[RemoveFile] = synchronized {
    val gone = paths(removes.map(_.path)) -- paths(adds.map(_.path)) -- parts.flatMap(_.inputs)
    ours.find(remove => gone(canonical(remove.path)))
  }

  private def paths(spelled: Seq[String]): Set[String] = spelled.iterator.map(canonical).toSet
}

private[spark] object RevertedCompactions {

  /**
   * What another commit has done already, as canonical paths.
   *
   * @param outputs compacted files that it has removed
   * @param others inputs that this commit would only add again
   * @param again inputs that it has added again
   */
  final case class AlreadyReverted(outputs: Set[String], others: Set[String], again: Set[String])

  /**
   * The canonical paths of a part.
   *
   * @param outputs the compacted files
   * @param inputs their inputs
   * @param ours the files that the commit itself removes
   */
  private final case class Paths(outputs: Set[String], inputs: Set[String], ours: Set[String])
}
