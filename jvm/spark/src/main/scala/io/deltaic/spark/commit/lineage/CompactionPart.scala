package io.deltaic.spark.commit.lineage

import scala.annotation.tailrec

import io.deltaic.protocol.{AddFile, RemoveFile}

/**
 * A part of a compaction. It is closed: no other file of the compaction holds rows of these inputs. So it can be taken
 * back alone: the compacted files are removed, and their inputs are added again (docs/decisions/0049).
 *
 * @param outputs the compacted files
 * @param inputs as the compaction removed them, with their deletion vectors
 */
private[spark] final case class CompactionPart(outputs: Seq[AddFile], inputs: Seq[RemoveFile]) {

  /**
   * The inputs as they were.
   *
   * @param modificationTimeMs the `remove`s do not have that of the files
   */
  def restoredInputs(modificationTimeMs: Long): Seq[AddFile] = inputs.map { input =>
    val file = input.restored
    file.copy(
      modificationTimeMs = modificationTimeMs,
      dataChange = false,
      // The positions in it are those of the commit that added the file first.
      tags = file.tags - Lineage.Tag - InputFiles.Tag
    )
  }
}

private[spark] object CompactionPart {

  /**
   * The parts of a commit with some of its inputs.
   *
   * @param isWanted whether an input is one of them
   * @param numRecords of statistics
   * @return none if the commit is not a compaction, or if its lineage contradicts the numbers of rows in the log
   */
  def of(
      removes: IndexedSeq[RemoveFile],
      adds: Seq[AddFile],
      isWanted: RemoveFile => Boolean,
      numRecords: Option[String] => Option[Long]
  ): Option[Seq[CompactionPart]] = {
    val isCompaction = removes.forall(!_.dataChange) && adds.forall(!_.dataChange)
    val inputs = adds.map { add =>
      Lineage.of(add).filter(lineage => numRecords(add.stats).contains(lineage.numRows))
        .map(_.inputs.collect { case (Some(input), count) if count > 0 => input }.toSet)
        .orElse(InputFiles.of(add).map(_.positions))
        .filter(_.forall(removes.isDefinedAt))
    }
    if (!isCompaction || inputs.exists(_.isEmpty)) None
    else {
      val outputs = adds.zip(inputs.flatten)
      val parts = removes.indices.filter(i => isWanted(removes(i)))
        .map(i => closed(Set(i), outputs)).distinct
        .map { part =>
          CompactionPart(
            outputs.collect { case (add, from) if from.exists(part) => add },
            part.toSeq.sorted.map(removes)
          )
        }
      Option.when(parts.forall(isWhole(_, numRecords)))(parts)
    }
  }

  @tailrec
  private def closed(part: Set[Int], outputs: Seq[(AddFile, Set[Int])]): Set[Int] = {
    val larger = part ++ outputs.iterator.map(_._2).filter(_.exists(part)).flatten
    if (larger.size == part.size) part else closed(larger, outputs)
  }

  /**
   * Whether the inputs are fully described and have as many live rows as the outputs. If not, some rows have gone
   * elsewhere, by another commit that reverted a compaction.
   */
  private def isWhole(part: CompactionPart, numRecords: Option[String] => Option[Long]): Boolean = {
    val before = part.inputs.map { input =>
      numRecords(input.stats).map(_ - input.deletionVector.fold(0L)(_.cardinality))
    }
    val after = part.outputs.map { output =>
      numRecords(output.stats).map(_ - output.deletionVector.fold(0L)(_.cardinality))
    }
    part.inputs.forall(input =>
      input.sizeBytes.isDefined && input.extendedFileMetadata.contains(true)
    ) && before.forall(_.isDefined) && after.forall(_.isDefined) &&
    before.flatten.sum == after.flatten.sum
  }
}
