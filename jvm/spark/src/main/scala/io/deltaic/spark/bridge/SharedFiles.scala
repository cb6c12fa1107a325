package io.deltaic.spark.bridge

import org.apache.hadoop.fs.Path

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, LogPath, RemoveFile}
import io.deltaic.replay.DeltaLog

/**
 * The files that a commit changes and others change, too, while it waits to be one. Nothing is kept for
 * it: which rows a commit ends in a file is the difference of two deletion vectors
 * (docs/decisions/0021).
 *
 * @param ends none for a commit that does not end single rows: its files cannot be shared
 */
private[bridge] final class SharedFiles(log: DeltaLog, ends: Option[RowEnds]) {
  import SharedFiles._

  private val vectors = new DeletionVectorStore(log.conf)

  /** The files that the changes remove or add, by canonical path: some that are added are there already. */
  def paths(changes: FileChanges): Set[String] =
    (changes.removes.iterator.map(_.path) ++ changes.adds.iterator.map(_.path)).map(canonical).toSet

  /**
   * How our change of each file goes with that of another commit, of those that both change: up to the
   * first that does not.
   *
   * @param ours the [[paths]] of the changes
   */
  def meetings(
      changes: FileChanges,
      ours: Set[String],
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Seq[Meeting] = {
    val touched = (removes.iterator.map(_.path) ++ adds.iterator.map(_.path))
      .filter(path => ours(canonical(path))).distinctBy(canonical).toVector
    if (touched.isEmpty) Nil
    else {
      val read = changes.removes.iterator.map(remove => canonical(remove.path) -> remove).toMap
      val left = changes.adds.iterator.map(add => canonical(add.path) -> add).toMap
      val theirs = adds.iterator.map(add => canonical(add.path) -> add).toMap
      // The same rows as before, in other files.
      val moved = removes.iterator.filterNot(_.dataChange).map(r => canonical(r.path)).toSet
      val all = touched.iterator.grouped(FilesAtOnce).flatMap { group =>
        val vector = vectorsOf(group.map(canonical).flatMap { path =>
          read.get(path).map(of) ++ left.get(path).map(of) ++ theirs.get(path).map(of)
        })
        group.map { spelled =>
          val path = canonical(spelled)
          val how = theirs.get(path) match {
            case Some(file) => compare(read.get(path), left.get(path), file, vector)
            case None => if (moved(path)) Moved else Inseparable
          }
          Meeting(spelled, theirs.get(path), how)
        }
      }
      val (together, apart) = all.span(_.how == Disjoint)
      together.toVector ++ apart.take(1)
    }
  }

  /**
   * @param remove the file as we read it; none if we only add it anew
   * @param add what we leave of it, if anything
   * @param theirs what the other commit left of it
   */
  private def compare(
      remove: Option[RemoveFile],
      add: Option[AddFile],
      theirs: AddFile,
      vector: Stored => DeletionVector
  ): How =
    remove match {
      case Some(read) if ends.exists(_.restEnded || add.isDefined) =>
        if (id(read.deletionVector) == id(theirs.deletionVector)) Disjoint
        else {
          val (before, now) = (vector(of(read)), vector(of(theirs)))
          if (!isSubset(before, now)) Inseparable
          else {
            val ended = now.copy()
            ended.andNot(before)
            add.foreach(left => retain(ended, vector(of(left))))
            if (ended.isEmpty) Disjoint else Overlapping(ended.cardinality)
          }
        }
      case _ => Inseparable
    }

  /** Those of `adds` that are not the same file after it lost rows: they hold rows that are new. */
  def withNewRows(adds: Seq[AddFile], removes: Seq[RemoveFile]): Seq[AddFile] = {
    val before = removes.iterator.map(remove => canonical(remove.path) -> remove).toMap
    adds.grouped(FilesAtOnce).flatMap { group =>
      val again = group.flatMap(add => before.get(canonical(add.path)).map(add -> _)).toMap
      val vector = vectorsOf(again.flatMap { case (add, remove) => Seq(of(add), of(remove)) })
      group.filterNot { add =>
        again.get(add).exists(remove => isSubset(vector(of(remove)), vector(of(add))))
      }
    }.toVector
  }

  /**
   * The changes with the same rows ended in the files as others have left them.
   *
   * @param theirs these files, by canonical path; none of them meets our change of it
   * @return with the files that vectors were written to
   */
  def follow(changes: FileChanges, theirs: Map[String, AddFile]): (FileChanges, Seq[Path]) = {
    val writer = ends.fold(vectors.newWriter(log.table)) { e =>
      vectors.newWriter(log.table, e.randomPrefixLength, e.maxVectorFileBytes)
    }
    def inlineBytes(ours: Option[DeletionVectorDescriptor]): Long =
      if (ours.exists(_.storageType == DeletionVectorDescriptor.Inline))
        ends.fold(0L)(_.inlineBytes)
      else 0L
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
            val ended = vector(of(add)).copy()
            ended.andNot(vector(of(read(path))))
            ended.or(vector(of(now)))
            // Whoever gives a file a deletion vector says how many rows it has.
            val rows = FileChanges.rows(add).get
            Option.when(ended.cardinality < rows)(
              now.copy(
                deletionVector = Some(writer.place(ended, inlineBytes(add.deletionVector))),
                dataChange = add.dataChange,
                stats = Some(WideStatistics.of(now.stats, rows))
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

  /** Those of the files that no vector of the changes lies in. */
  def unused(files: Seq[Path], changes: FileChanges): Seq[Path] = {
    val used = changes.adds.iterator.flatMap(_.deletionVector).flatMap(_.absolutePath(log.table))
      .toSet
    files.filterNot(used)
  }

  def delete(files: Seq[Path]): Unit = UselessFiles.delete(log.table, files, log.conf)

  /** Writers differ in how they spell a path. */
  def canonical(logPath: String): String = LogPath.canonical(log.table, logPath)

  /** The vectors of some files, read together where they lie together. */
  private def vectorsOf(files: Iterable[Stored]): Stored => DeletionVector = {
    val wanted = files.iterator.collect { case Stored(path, Some(vector)) => path -> vector }
      .distinctBy { case (path, vector) => path -> vector.uniqueId }.toVector
    val read = wanted.map { case (path, vector) => path -> vector.uniqueId }
      .zip(vectors.readAll(log.table, wanted)).toMap
    file => file.vector.fold(new DeletionVector)(v => read(file.path -> v.uniqueId).get)
  }
}

private[bridge] object SharedFiles {

  /**
   * A file that two commits change.
   *
   * @param path as the other one spells it
   * @param theirs what it left of the file, if anything
   */
  final case class Meeting(path: String, theirs: Option[AddFile], how: How)

  /** A file with its vector, as a log entry tells of it. */
  private final case class Stored(path: String, vector: Option[DeletionVectorDescriptor])

  private def of(file: AddFile): Stored = Stored(file.path, file.deletionVector)
  private def of(file: RemoveFile): Stored = Stored(file.path, file.deletionVector)

  /** Of how many files vectors are in memory at a time. */
  private val FilesAtOnce = 256

  sealed trait How

  /** Each of the two ended other rows. */
  case object Disjoint extends How

  /** Both ended so many of the rows. */
  final case class Overlapping(rows: Long) extends How

  /** All rows that the other one found are there, in other files. */
  case object Moved extends How

  /** At least one of them did more to the file than to end rows of it. */
  case object Inseparable extends How

  private def id(descriptor: Option[DeletionVectorDescriptor]): Option[String] =
    descriptor.map(_.uniqueId)

  private def isSubset(some: DeletionVector, all: DeletionVector): Boolean = {
    val rest = some.copy()
    rest.andNot(all)
    rest.isEmpty
  }

  private def retain(rows: DeletionVector, kept: DeletionVector): Unit = {
    val others = rows.copy()
    others.andNot(kept)
    rows.andNot(others)
  }
}
