package io.deltaic.spark.commit

import org.apache.hadoop.fs.Path

import io.deltaic.dv.{DeletionVector, DeletionVectorFileWriter, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, LogPath, RemoveFile}
import io.deltaic.replay.DeltaLog

/**
 * Rebases the deletion vectors of a commit onto files that winning commits have changed, too. It needs no
 * extra state: the rows that a commit deletes from a file are the difference of two deletion vectors
 * (docs/decisions/0021).
 *
 * @param deletions none for a commit that does not delete single rows: its files cannot be rebased
 */
private[spark] final class DeletionVectorRebase(log: DeltaLog, deletions: Option[RebaseSettings]) {
  import DeletionVectorRebase._

  private val vectors = new DeletionVectorStore(log.conf)
  private val relocatesRows = deletions.exists(_.relocatesRows)

  /** The canonical paths of the files that the changes remove or add; some added files exist already. */
  def paths(changes: CommitFiles): Set[String] =
    (changes.removes.iterator.map(_.path) ++ changes.adds.iterator.map(_.path)).map(canonical).toSet

  /**
   * Compares our change of each file with that of another commit, for the files that both change. The result
   * holds the disjoint changes, and at most one that is not disjoint.
   *
   * @param ours whether a canonical path is one of the changes
   */
  def conflicts(
      changes: CommitFiles,
      ours: String => Boolean,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Seq[FileConflict] = {
    val touched = (removes.iterator.map(_.path) ++ adds.iterator.map(_.path))
      .filter(path => ours(canonical(path))).distinctBy(canonical).toVector
    if (touched.isEmpty) Nil
    else {
      val read = changes.removes.iterator.map(remove => canonical(remove.path) -> remove).toMap
      val left = changes.adds.iterator.map(add => canonical(add.path) -> add).toMap
      val theirs = adds.iterator.map(add => canonical(add.path) -> add).toMap
      // The other commit copied all rows to other files.
      val moved = removes.iterator.filterNot(_.dataChange).map(r => canonical(r.path)).toSet
      val all = touched.iterator.grouped(FilesAtOnce).flatMap { group =>
        val vector = vectorsOf(group.map(canonical).flatMap { path =>
          read.get(path).map(of) ++ left.get(path).map(of) ++ theirs.get(path).map(of)
        })
        group.map { spelled =>
          val path = canonical(spelled)
          val kind = theirs.get(path) match {
            case Some(file) => compare(read.get(path), left.get(path), file, vector)
            case None if relocatesRows && read.contains(path) && !moved(path) => Disjoint
            case None => if (moved(path)) Moved else Inseparable
          }
          FileConflict(spelled, theirs.get(path), kind)
        }
      }
      val (disjoint, rest) = all.span(_.kind == Disjoint)
      disjoint.toVector ++ rest.take(1)
    }
  }

  /**
   * @param remove the file as we read it; none if we only add it again
   * @param add the file as we leave it, if any of its rows remain
   * @param theirs the file as the other commit left it
   */
  private def compare(
      remove: Option[RemoveFile],
      add: Option[AddFile],
      theirs: AddFile,
      vector: Stored => DeletionVector
  ): ConflictKind =
    remove match {
      case Some(read) if relocatesRows || deletions.exists(_.restDeleted || add.isDefined) =>
        if (id(read.deletionVector) == id(theirs.deletionVector)) Disjoint
        else {
          val (before, now) = (vector(of(read)), vector(of(theirs)))
          if (!before.isSubsetOf(now)) Inseparable
          else if (relocatesRows) Disjoint
          else {
            val deleted = now.minus(before)
            // Without a file that is left, all of its rows are deleted.
            val both = add.fold(deleted)(left => deleted.minus(deleted.minus(vector(of(left)))))
            if (both.isEmpty) Disjoint else Overlapping(both.cardinality)
          }
        }
      case _ => Inseparable
    }

  /** The files of `adds` that hold new rows: a file that only lost rows is left out. */
  def withNewRows(adds: Seq[AddFile], removes: Seq[RemoveFile]): Seq[AddFile] = {
    val before = removes.iterator.map(remove => canonical(remove.path) -> remove).toMap
    adds.grouped(FilesAtOnce).flatMap { group =>
      val again = group.flatMap(add => before.get(canonical(add.path)).map(add -> _)).toMap
      val vector = vectorsOf(again.flatMap { case (add, remove) => Seq(of(add), of(remove)) })
      group.filterNot { add =>
        again.get(add).exists(remove => vector(of(remove)).isSubsetOf(vector(of(add))))
      }
    }.toVector
  }

  /**
   * The changes with the same rows deleted from the files as winning commits have left them.
   *
   * @param theirs these files, by canonical path; the changes of each are disjoint from ours
   * @return the changes, and the files that vectors were written to
   */
  def rebaseOnto(changes: CommitFiles, theirs: Map[String, AddFile]): (CommitFiles, Seq[Path]) = {
    val writer = newVectorWriter()
    val limit = deletions.fold(0L)(_.inlineBytes)
    def inlineBytes(ours: Option[DeletionVectorDescriptor]): Long =
      if (ours.exists(_.storageType == DeletionVectorDescriptor.Inline)) limit
      else DeletionVectorFileWriter.maxInlineBytes(limit, Long.MaxValue)
    try {
      val read = changes.removes.iterator.map(remove => canonical(remove.path) -> remove).toMap
      val removes = changes.removes.map { remove =>
        theirs.get(canonical(remove.path)).fold(remove) { now =>
          now.remove(remove.deletionTimestampMs.getOrElse(0L), remove.dataChange)
        }
      }
      val adds = changes.adds.grouped(FilesAtOnce).flatMap { group =>
        val shared = group.map(add => canonical(add.path)).filter(theirs.contains)
        val vector = vectorsOf(
          group.filter(add => theirs.contains(canonical(add.path))).map(of) ++
            shared.flatMap(path => Seq(of(theirs(path)), of(read(path))))
        )
        group.flatMap { add =>
          val path = canonical(add.path)
          theirs.get(path).fold(Option(add)) { now =>
            val deleted = vector(of(add)).minus(vector(of(read(path)))).or(vector(of(now)))
            // A file with a deletion vector has `numRecords` in its statistics.
            val rows = CommitFiles.rows(add).get
            Option.when(deleted.cardinality < rows)(
              now.copy(
                deletionVector = Some(writer.place(deleted, inlineBytes(add.deletionVector))),
                dataChange = add.dataChange,
                stats = Some(LooseBounds.of(now.stats, rows))
              )
            )
          }
        }
      }.toVector
      writer.close()
      (changes.copy(removes = removes, adds = adds), writer.files)
    } catch {
      case e: Throwable =>
        writer.abort()
        throw e
    }
  }

  def newVectorWriter(): DeletionVectorFileWriter =
    deletions.fold(vectors.newWriter(log.table)) { e =>
      vectors.newWriter(log.table, e.randomPrefixLength, e.maxVectorFileBytes)
    }

  /** The files in which no vector of the changes is stored. */
  def unused(files: Seq[Path], changes: CommitFiles): Seq[Path] = {
    val used = changes.adds.iterator.flatMap(_.deletionVector).flatMap(_.absolutePath(log.table))
      .toSet
    files.filterNot(used)
  }

  def delete(files: Seq[Path]): Unit = OrphanFiles.delete(log.table, files, log.conf)

  /** Writers differ in how they spell a path. */
  def canonical(logPath: String): String = LogPath.canonical(log.table, logPath)

  /** The vectors of some files; those stored together are read together. */
  private[commit] def vectorsOf(files: Iterable[Stored]): Stored => DeletionVector = {
    val wanted = files.iterator.collect { case Stored(path, Some(vector)) => path -> vector }
      .distinctBy { case (path, vector) => path -> vector.uniqueId }.toVector
    val read = wanted.map { case (path, vector) => path -> vector.uniqueId }
      .zip(vectors.readAll(log.table, wanted)).toMap
    file => file.vector.fold(new DeletionVector)(v => read(file.path -> v.uniqueId).get)
  }
}

private[spark] object DeletionVectorRebase {

  /**
   * A file that two commits change.
   *
   * @param path as the other commit spells it
   * @param theirs the file as the other commit left it, if any of its rows remain
   */
  final case class FileConflict(path: String, theirs: Option[AddFile], kind: ConflictKind)

  /** A file with its vector, as a log entry describes it. */
  private[commit] final case class Stored(path: String, vector: Option[DeletionVectorDescriptor])

  private[commit] def of(file: AddFile): Stored = Stored(file.path, file.deletionVector)
  private[commit] def of(file: RemoveFile): Stored = Stored(file.path, file.deletionVector)

  /** The number of files whose vectors are in memory at a time. */
  private val FilesAtOnce = 256

  sealed trait ConflictKind

  /** The two commits deleted different rows, or ours has relocated rows and the other has deleted some. */
  case object Disjoint extends ConflictKind

  /** Both commits deleted this number of rows. */
  final case class Overlapping(rows: Long) extends ConflictKind

  /** The other commit copied all rows to other files. */
  case object Moved extends ConflictKind

  /** At least one of the commits did more to the file than to delete rows from it. */
  case object Inseparable extends ConflictKind

  private def id(descriptor: Option[DeletionVectorDescriptor]): Option[String] =
    descriptor.map(_.uniqueId)
}
