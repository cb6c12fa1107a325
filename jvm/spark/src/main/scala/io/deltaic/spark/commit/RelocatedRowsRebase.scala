package io.deltaic.spark.commit

import org.apache.hadoop.fs.Path

import io.deltaic.dv.{DeletionVector, DeletionVectorFileWriter}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.commit.DeletionVectorRebase.{Stored, of}
import io.deltaic.spark.commit.lineage.{InputFiles, Lineage, RelocatedRows}

/**
 * Rebases two commits of which one has relocated rows to other files, and the other has deleted some of them. In
 * either order, the rows are deleted in the new files, by deletion vectors
 * (docs/decisions/0047-a-compacted-file-knows-its-inputs.md).
 */
private[spark] final class RelocatedRowsRebase(
    rebase: DeletionVectorRebase,
    settings: RebaseSettings
) {

  /**
   * Our commit has relocated rows: what others have meanwhile deleted from its inputs is deleted from its new files.
   *
   * @param original the changes before any rebase, by which the lineage counts
   * @param changes the changes as rebased so far
   * @param theirs the inputs that others have changed as they left them, by canonical path; none for a removed file
   * @return none if it is not known where the deleted rows are
   */
  def ofMoves(
      original: CommitFiles,
      changes: CommitFiles,
      theirs: Map[String, Option[AddFile]]
  ): Option[(CommitFiles, Seq[Path])] = {
    val removes = original.removes.toIndexedSeq
    val moved = relocatedRows(removes, original.adds)
    val read = removes.filter(remove => theirs.contains(rebase.canonical(remove.path)))
    val vector = rebase.vectorsOf(
      read.map(of) ++ theirs.values.flatten.map(of) ++ changes.adds.map(of)
    )
    val deleted = read.map { remove =>
      val before = vector(of(remove))
      val now = theirs(rebase.canonical(remove.path))
      val rows = now.map(file => vector(of(file)).minus(before))
      RowLookup.RowsInFile(remove.restored, before, rows)
    }
    val positions =
      if (deleted.forall(rows => moved.areKnown(rows.file.path)))
        Some(positionsOf(moved, deleted))
      else settings.lookup.flatMap(_.find(deleted, original.adds))
    positions.map(withDeleted(original, changes, theirs, vector, _))
  }

  /** @param byPath the positions of rows in new files that others have deleted */
  private def withDeleted(
      original: CommitFiles,
      changes: CommitFiles,
      theirs: Map[String, Option[AddFile]],
      vector: Stored => DeletionVector,
      byPath: Map[String, DeletionVector]
  ): (CommitFiles, Seq[Path]) = {
    val left = changes.removes.flatMap { remove =>
      theirs.get(rebase.canonical(remove.path)).fold(Option(remove)) { now =>
        now.map(_.remove(remove.deletionTimestampMs.getOrElse(0L), dataChange = false))
      }
    }
    val lineage = new RebasedLineage(original, left)
    val outputs = changes.adds.map { add =>
      lineage.of(add) -> byPath.get(add.path).map(_.or(vector(of(add))))
    }
    val (adds, files) = withVectors(outputs)
    (changes.copy(removes = left, adds = adds), files)
  }

  /** The lineage of new files by what is left of the `remove`s. */
  private final class RebasedLineage(original: CommitFiles, left: Seq[RemoveFile]) {
    private val now = left.map(remove => rebase.canonical(remove.path) -> remove).toMap
    private val inputs = original.removes.zipWithIndex
    private val dropped =
      inputs.collect { case (r, i) if !now.contains(rebase.canonical(r.path)) => i }.toSet
    private val vectors = inputs.collect {
      case (r, i)
          if now.get(rebase.canonical(r.path)).exists(_.deletionVector != r.deletionVector) =>
        i -> r.deletionVector
    }.toMap
    private val tags = original.adds.map(add => add.path -> Lineage.of(add)).toMap

    private val inputFiles = original.adds.map(add => add.path -> InputFiles.of(add)).toMap

    def of(add: AddFile): AddFile =
      tags.get(add.path).flatten.fold(withInputFiles(add)) { lineage =>
        val own = lineage.inputs.flatMap(_._1).toSet
        val read = lineage.copy(vectors = vectors.filter { case (input, _) => own(input) })
        add.copy(tags = add.tags + read.without(dropped).tag)
      }

    private def withInputFiles(add: AddFile): AddFile =
      inputFiles.get(add.path).flatten.fold(add) { inputs =>
        add.copy(tags = add.tags - InputFiles.Tag ++ inputs.without(dropped).map(_.tag))
      }
  }

  /**
   * Others have relocated rows that our commit deletes: they are deleted where they are now.
   *
   * @param changes our changes, rebased onto all earlier commits
   * @return none if it is not known where the rows are
   */
  def ofDeletions(
      changes: CommitFiles,
      adds: Seq[AddFile],
      removes: Seq[RemoveFile]
  ): Option[(CommitFiles, Seq[Path])] = {
    val read = changes.removes.map(remove => rebase.canonical(remove.path) -> remove).toMap
    val left = changes.adds.map(add => rebase.canonical(add.path) -> add).toMap
    val paths =
      removes.filterNot(_.dataChange).map(r => rebase.canonical(r.path)).filter(read.contains)
    // A file that was added again has its rows where they were.
    val again = adds.iterator.map(add => rebase.canonical(add.path)).toSet
    val canFollow = paths.forall(p => (settings.restDeleted || left.contains(p)) && !again(p))
    Option.when(paths.nonEmpty && canFollow) {
      val moved = relocatedRows(removes.toIndexedSeq, adds)
      val vector = rebase.vectorsOf(
        paths.flatMap(p => of(read(p)) +: left.get(p).map(of).toSeq) ++ adds.map(of)
      )
      val rows = paths.map { path =>
        val before = vector(of(read(path)))
        val deleted = left.get(path).map(add => vector(of(add)).minus(before))
        RowLookup.RowsInFile(read(path).restored, before, deleted)
      }
      val byPath =
        if (paths.forall(moved.areKnown)) byLineage(moved, rows)
        else byLookup(rows, adds.filterNot(_.dataChange), vector)
      byPath.map(follow(changes, adds, paths, vector, _))
    }.flatten
  }

  /** The same as `byLineage`, if the rows can be found without it. */
  private def byLookup(
      rows: Seq[RowLookup.RowsInFile],
      adds: Seq[AddFile],
      vector: Stored => DeletionVector
  ): Option[Map[String, DeletionVector]] =
    settings.lookup.flatMap(_.find(rows, adds)).filter { byPath =>
      adds.filter(add => byPath.contains(add.path))
        .forall(add => byPath(add.path).isDisjointFrom(vector(of(add))))
    }

  /** The positions of deleted rows in the files that they were moved to; none if some were deleted before. */
  private def byLineage(
      moved: RelocatedRows,
      rows: Seq[RowLookup.RowsInFile]
  ): Option[Map[String, DeletionVector]] = {
    def stored(rows: RowLookup.RowsInFile) = Stored(rows.file.path, moved.vectorOf(rows.file.path))
    val base = rebase.vectorsOf(rows.map(stored))
    val moving = rows.map(r => r.copy(vector = base(stored(r))))
    Option.when(moving.forall(r => r.positions.forall(_.isDisjointFrom(r.vector)))) {
      positionsOf(moved, moving)
    }
  }

  /** The positions of rows in the files that they were moved to, by path; it is known where they are. */
  private def positionsOf(
      moved: RelocatedRows,
      rows: Seq[RowLookup.RowsInFile]
  ): Map[String, DeletionVector] =
    rows.flatMap(r => moved.positions(r.file.path, r.vector, r.positions))
      .groupMapReduce { case (add, _) => add.path } { case (_, positions) => positions }(_.or(_))

  /** @param byPath the positions of deleted rows in the files that others have moved them to */
  private def follow(
      changes: CommitFiles,
      adds: Seq[AddFile],
      paths: Seq[String],
      vector: Stored => DeletionVector,
      byPath: Map[String, DeletionVector]
  ): (CommitFiles, Seq[Path]) = {
    val gone = paths.toSet
    val changesData =
      changes.removes.exists(r => r.dataChange && gone(rebase.canonical(r.path)))
    val outputs = adds.filter(add => byPath.contains(add.path))
    val (again, files) = withVectors(outputs.map { add =>
      val deleted = byPath(add.path).or(vector(of(add)))
      add.copy(dataChange = changesData) -> Some(deleted)
    })
    val timestampMs = changes.removes.flatMap(_.deletionTimestampMs).maxOption.getOrElse(0L)
    val after = changes.copy(
      removes = changes.removes.filterNot(r => gone(rebase.canonical(r.path))) ++
        outputs.map(_.remove(timestampMs, changesData)),
      adds = changes.adds.filterNot(a => gone(rebase.canonical(a.path))) ++ again
    )
    (after, files)
  }

  private def relocatedRows(removes: IndexedSeq[RemoveFile], adds: Seq[AddFile]): RelocatedRows =
    new RelocatedRows(removes, adds, rebase.canonical, CommitFiles.rowsIn)

  /** The files with these rows deleted; a file without remaining rows is left out. */
  private def withVectors(
      files: Seq[(AddFile, Option[DeletionVector])]
  ): (Seq[AddFile], Seq[Path]) = {
    val bytes = files.flatMap(_._2).map(_.serializedSizeBytes).sum
    val inlineBytes = DeletionVectorFileWriter.maxInlineBytes(settings.inlineBytes, bytes)
    val writer = rebase.newVectorWriter()
    try {
      val adds = files.flatMap {
        case (add, None) => Some(add)
        case (add, Some(deleted)) =>
          val rows = CommitFiles.rows(add).get
          Option.when(deleted.cardinality < rows) {
            val vector: DeletionVectorDescriptor = writer.place(deleted, inlineBytes)
            add.copy(
              deletionVector = Some(vector),
              stats = Some(LooseBounds.of(add.stats, rows))
            )
          }
      }
      writer.close()
      (adds, writer.files)
    } catch {
      case e: Throwable =>
        writer.abort()
        throw e
    }
  }
}
