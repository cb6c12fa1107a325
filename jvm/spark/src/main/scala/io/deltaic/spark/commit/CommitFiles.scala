package io.deltaic.spark.commit

import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.protocol.{AddCdcFile, AddFile, DeltaicException, RemoveFile}
import io.deltaic.spark.commit.lineage.{CompactionPart, InputFiles, Lineage}
import io.deltaic.spark.util.Json

/**
 * The files a commit removes and adds. They stay in the JVM, whatever their number.
 *
 * @param changeFiles if there are any, the change data feed reads only these of the commit
 */
private[spark] final case class CommitFiles(
    removes: Seq[RemoveFile] = Nil,
    adds: Seq[AddFile] = Nil,
    changeFiles: Seq[AddCdcFile] = Nil
) {

  /** Counts from which operation metrics are derived; they are computed from the actions alone. */
  lazy val summary: ObjectNode = {
    val removedPaths = removes.iterator.map(_.path).toSet
    // A file that is removed and added under the same path only changed its deletion vector.
    val (kept, newFiles) = adds.partition(add => removedPaths(add.path))
    val keptPaths = kept.iterator.map(_.path).toSet
    val goneFiles = removes.filterNot(remove => keptPaths(remove.path))
    val oldVectors = removes.filter(_.deletionVector.isDefined).map(_.path).toSet
    val newVectors = adds.filter(_.deletionVector.isDefined).map(_.path).toSet
    Message.of("FileCounts")(
      "numAdded" -> newFiles.size,
      "addedBytes" -> newFiles.map(_.sizeBytes).sum,
      "addedRows" -> newFiles.flatMap(CommitFiles.rows).sum,
      "numRemoved" -> goneFiles.size,
      "removedBytes" -> goneFiles.flatMap(_.sizeBytes).sum,
      "numDeletionVectorsAdded" -> newVectors.size,
      "numDeletionVectorsRemoved" -> oldVectors.size,
      "numDeletionVectorsUpdated" -> newVectors.intersect(oldVectors).size,
      "numChangeFiles" -> changeFiles.size,
      "rowsWithoutRowIds" -> adds.filter(_.baseRowId.isEmpty).flatMap(CommitFiles.rows).sum,
      "dataChange" -> (adds.exists(_.dataChange) || removes.exists(_.dataChange))
    )
  }

  /**
   * The files of a compaction without those parts that have some of its inputs. The lineage of the others counts by
   * the inputs that are left.
   *
   * @return none if it is not known where the rows of these inputs are
   */
  def withoutParts(isInput: RemoveFile => Boolean): Option[CommitFiles] =
    CompactionPart.of(removes.toIndexedSeq, adds, isInput, CommitFiles.rowsIn).map { parts =>
      val inputs = parts.flatMap(_.inputs).toSet
      val outputs = parts.flatMap(_.outputs).map(_.path).toSet
      val dropped = removes.indices.filter(i => inputs(removes(i))).toSet
      copy(
        removes = removes.filterNot(inputs),
        adds = adds.filterNot(add => outputs(add.path)).map { add =>
          Lineage.of(add).fold(InputFiles.without(add, dropped)) { lineage =>
            add.copy(tags = add.tags + lineage.without(dropped).tag)
          }
        }
      )
    }
}

private[spark] object CommitFiles {

  /**
   * Assigns row IDs to the files that a commit adds to a table with row tracking. Files without IDs get
   * consecutive ranges (Protocol § Writer Requirements for Row Tracking). The others were in the
   * table before, under another deletion vector, and keep theirs.
   *
   * @param firstRowId the first free row ID
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
      case existing if existing.baseRowId.isDefined => existing
      case add =>
        val count = rows(add).getOrElse(
          throw DeltaicException(
            "DELTAIC_ROW_COUNT_UNKNOWN",
            Map("table" -> table, "file" -> add.path)
          )
        )
        val withIds = add.copy(baseRowId = Some(next), defaultRowCommitVersion = Some(version))
        next += count
        withIds
    }
  }

  /** Rows in the file that are not deleted. */
  def liveRows(add: AddFile): Option[Long] =
    rows(add).map(_ - add.deletionVector.fold(0L)(_.cardinality))

  /**
   * `numRecords` of a file's statistics: rows in the file, deleted ones included. Statistics that
   * cannot be parsed are ignored.
   */
  def rows(add: AddFile): Option[Long] = rowsIn(add.stats)

  def rowsIn(statistics: Option[String]): Option[Long] =
    statistics
      .flatMap(Json.tryParse)
      .flatMap(stats => Option(stats.get("numRecords")))
      .filter(_.canConvertToLong)
      .map(_.longValue)
}
