package io.deltaic.replay

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.RemoveFile
import io.deltaic.replay.checkpoint.{CheckpointFile, StructCell}

/** The file actions of one row group of a checkpoint. */
private[replay] final class RowGroupRead(table: Path, file: CheckpointFile, rowGroup: Int) {
  import RowGroupRead._

  private val block = new FileBlockBuilder(table)
  private val removed = Vector.newBuilder[(String, RemoveFile)]
  private var details: FileDetails = _

  def readAll(): Unit = readRows(detailFields)

  /** Everything but the details. Rows and details may be read by two threads at the same time. */
  def readRows(): Unit = readRows(Set.empty)

  private def readRows(more: Set[String]): Unit =
    visit(Map("add" -> (addFields ++ more), "remove" -> removeFields))(
      _.appendTo(block),
      (key, remove) => removed += key -> remove
    )

  /** Statistics and partition values, if the file has any. */
  def readDetails(): Unit = file.read(rowGroup, Map("add" -> detailFields)) { record =>
    val found = new FileDetails
    details = found
    visitor(record)(_.appendTo(found), (_, _) => ())
  }

  def removes: Vector[(String, RemoveFile)] = removed.result()

  def result(): FileBlock = if (details == null) block.result() else block.resultWith(details)

  /** Passes on the files as they are read, at most `rows` at a time. */
  def filesInBatches(rows: Int)(take: FileBlock => Unit): Unit = {
    var batch = new FileBlockBuilder(table)
    visit(Map("add" -> (addFields ++ detailFields)))(
      add => {
        add.appendTo(batch)
        if (batch.size == rows) {
          take(batch.result())
          batch = new FileBlockBuilder(table)
        }
      },
      (_, _) => ()
    )
    if (batch.size > 0) take(batch.result())
  }

  /** Visits each `remove` with its key. */
  def tombstones(take: (String, RemoveFile) => Unit): Unit =
    visit(Map("remove" -> removeFields))(_ => (), take)

  private def visit(wanted: Map[String, Set[String]])(
      onAdd: AddCells => Unit,
      onRemove: (String, RemoveFile) => Unit
  ): Unit = file.read(rowGroup, wanted)(visitor(_)(onAdd, onRemove))

  private def visitor(record: StructCell)(
      onAdd: AddCells => Unit,
      onRemove: (String, RemoveFile) => Unit
  ): () => Unit = {
    val add = record.struct("add").map(new AddCells(_)).orNull
    val remove = record.struct("remove").map(new RemoveCells(_)).orNull
    () => {
      if (add != null && add.isDefined) onAdd(add)
      if (remove != null && remove.isDefined) {
        val action = remove.read()
        onRemove(FileKey.of(table, action.path, action.dvId), action)
      }
    }
  }

  /** Statistics are read in one of two forms: as JSON, if any row of the file has JSON statistics, else as a struct. */
  private def detailFields: Set[String] =
    Set("partitionValues", if (file.hasValues("add", "stats")) "stats" else "stats_parsed")
}

private object RowGroupRead {

  private val removeFields = Set(
    "path",
    "deletionTimestamp",
    "dataChange",
    "extendedFileMetadata",
    "partitionValues",
    "size",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion"
  )

  private val addFields = Set(
    "path",
    "size",
    "modificationTime",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider"
  )
}
