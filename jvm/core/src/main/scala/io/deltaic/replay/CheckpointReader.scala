package io.deltaic.replay

import scala.collection.immutable.{HashMap, HashSet}
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol._
import io.deltaic.replay.checkpoint.CheckpointFile

/** A checkpoint that cannot be read, for any reason. Replay then uses an older checkpoint or the commits. */
private[deltaic] final class UnreadableCheckpoint(
    val checkpoint: Checkpoint,
    val reason: String,
    cause: Throwable = null
) extends Exception(s"${checkpoint.name}: $reason", cause)

/**
 * Reads checkpoints of the V1 and the V2 spec (Protocol § Checkpoint Specs), without Spark.
 *
 * @param maxInMemoryBytes the files of a larger checkpoint stay in it, see [[UnloadedFiles]]
 */
private[deltaic] final class CheckpointReader(
    table: Path,
    conf: Configuration,
    store: LogStore,
    maxInMemoryBytes: Long
) {
  import CheckpointReader._

  private val commits = new CommitReader(table, store)
  private val sidecarDirectory = FileNames.sidecarDirectory(FileNames.logDirectory(table))

  /**
   * The state in a checkpoint.
   *
   * @param isKnownToBeReadable whether another source shows that the table is readable; if not, file actions are read
   *   only after the checkpoint's own protocol has been checked
   * @param checkReadable receives the state without its files, and refuses a table that this build cannot read
   */
  def read(checkpoint: Checkpoint, isKnownToBeReadable: Boolean)(
      checkReadable: TableState => Unit
  ): TableState =
    if (FileNames.isJson(checkpoint.files.head)) {
      val actions =
        guarded(checkpoint)(commits.readCheckpoint(checkpoint.version, checkpoint.files.head))
      val base = baseOf(checkpoint, actions)
      checkReadable(base.state)
      val files = actions.collect { case file: FileAction => file }
      withFiles(checkpoint, base, open(checkpoint, base.sidecars), files)
    } else {
      val files = inParallel(checkpoint, checkpoint.files)(new CheckpointFile(_, conf))
      val ahead =
        if (isKnownToBeReadable && checkpoint.sizeBytes <= maxInMemoryBytes) Some(reads(files))
        else None
      val nonFileReads = files.map(new NonFileRead(_))
      runAll(checkpoint, nonFileReads.map(r => () => r.run()) ++ ahead.toSeq.flatMap(tasksOf))
      val base = baseOf(checkpoint, nonFileReads.flatMap(_.actions))
      checkReadable(base.state)
      withFiles(checkpoint, base, files ++ open(checkpoint, base.sidecars), Nil, ahead)
    }

  /**
   * Verifies that a checkpoint is complete, without reading its file actions.
   *
   * @throws UnreadableCheckpoint if it cannot replace the commits before it
   */
  def verify(checkpoint: Checkpoint): Unit = {
    val base = readBase(checkpoint)
    if (base.state.nonFile.protocol.isEmpty || base.state.nonFile.metadata.isEmpty)
      throw new UnreadableCheckpoint(checkpoint, "it lacks the protocol or the metaData action")
    open(checkpoint, base.sidecars)
    ()
  }

  /** The sidecars that a checkpoint references. */
  def sidecars(checkpoint: Checkpoint): Seq[Sidecar] = readBase(checkpoint).sidecars

  /** The size of its top-level files and its sidecars; None if they cannot be read. */
  def bytesOf(checkpoint: Checkpoint): Option[Long] =
    try {
      val listed = sidecars(checkpoint).flatMap(fileOf(_))
      val sizes = inParallel(checkpoint, listed)(store.status(_).fold(0L)(_.getLen))
      Some(checkpoint.sizeBytes + sizes.sum)
    } catch { case _: UnreadableCheckpoint => None }

  private def readBase(checkpoint: Checkpoint): WithoutFiles =
    if (FileNames.isJson(checkpoint.files.head)) {
      val file = checkpoint.files.head
      baseOf(checkpoint, guarded(checkpoint)(commits.readCheckpoint(checkpoint.version, file)))
    } else {
      val nonFileReads =
        inParallel(checkpoint, checkpoint.files)(f => new NonFileRead(new CheckpointFile(f, conf)))
      runAll(checkpoint, nonFileReads.map(r => () => r.run()))
      baseOf(checkpoint, nonFileReads.flatMap(_.actions))
    }

  /**
   * The base with the checkpoint's files and tombstones. A V2 checkpoint stores its file actions inline or in sidecars;
   * if it has both, both are read.
   *
   * @param files the checkpoint's own Parquet files, then its sidecars
   * @param readAhead the row groups of the former that have already been read
   */
  private def withFiles(
      checkpoint: Checkpoint,
      base: WithoutFiles,
      files: Seq[CheckpointFile],
      inline: Seq[FileAction],
      readAhead: Option[Seq[RowGroupRead]] = None
  ): TableState = {
    val sidecars = files.filterNot(f => checkpoint.files.contains(f.status))
    val sizeBytes = checkpoint.sizeBytes + sidecars.map(_.status.getLen).sum
    val state = base.state.copy(checkpointBytes = sizeBytes)
    if (sizeBytes > maxInMemoryBytes)
      state.copy(stored = Some(stored(checkpoint, sizeBytes, files, inline.nonEmpty)))
    else {
      val now = reads(if (readAhead.isDefined) sidecars else files)
      runAll(checkpoint, tasksOf(now))
      loaded(checkpoint, state, readAhead.getOrElse(Nil) ++ now, inline)
    }
  }

  /** Each row group becomes one block. */
  private def loaded(
      checkpoint: Checkpoint,
      base: TableState,
      reads: Seq[RowGroupRead],
      inline: Seq[FileAction]
  ): TableState = {
    val state = base.copy(
      files = FileTable.of(table, guarded(checkpoint)(reads.map(_.result()))),
      tombstones = Tombstones(HashMap.from(reads.iterator.flatMap(_.removes)))
    )
    if (inline.isEmpty) state
    else state.advanced(Iterator(new CommitFile(checkpoint.version, 0, inline)))
  }

  private def stored(
      checkpoint: Checkpoint,
      sizeBytes: Long,
      files: Seq[CheckpointFile],
      hasInline: Boolean
  ): UnloadedFiles = {
    def slice(file: FileStatus, rowGroup: Option[Int]) =
      CheckpointSlice.of(table, checkpoint.version, file, rowGroup)
    val rowGroups = files.flatMap { file =>
      file.rowGroupsWith(FileActions).map(number => slice(file.status, Some(number)))
    }
    val inline = if (hasInline) checkpoint.files.map(slice(_, None)) else Nil
    new UnloadedFiles(checkpoint, sizeBytes, rowGroups ++ inline, HashSet.empty, conf)
  }

  /** @throws UnreadableCheckpoint if the actions contradict each other, or are of another version */
  private def baseOf(checkpoint: Checkpoint, actions: Seq[Action]): WithoutFiles = {
    def require(holds: Boolean, reason: => String): Unit =
      if (!holds) throw new UnreadableCheckpoint(checkpoint, reason)
    def all[A](pick: PartialFunction[Action, A]): Seq[A] = actions.collect(pick).distinct

    val protocols = all { case p: Protocol => p }
    val metadatas = all { case m: Metadata => m }
    val specs = actions.collect { case c: CheckpointMetadata => c }
    require(protocols.size <= 1, "it holds several protocol actions")
    require(metadatas.size <= 1, "it holds several metaData actions")
    require(
      specs.size == 1 || (specs.isEmpty && !FileNames.isUuidCheckpoint(checkpoint.files.head)),
      s"it holds ${specs.size} checkpointMetadata actions"
    )
    specs.foreach { spec =>
      require(spec.version == checkpoint.version, s"its content is of version ${spec.version}")
    }
    WithoutFiles(
      TableState.empty(table).copy(nonFile =
        NonFileState(
          protocols.headOption,
          metadatas.headOption,
          actions.collect { case t: SetTransaction => t.appId -> t }.toMap,
          actions.collect { case d: DomainMetadata if !d.removed => d.domain -> d }.toMap
        )
      ),
      all { case s: Sidecar => s }
    )
  }

  private def open(checkpoint: Checkpoint, listed: Seq[Sidecar]): Seq[CheckpointFile] =
    inParallel(checkpoint, listed) { sidecar =>
      val path = fileOf(sidecar).getOrElse {
        val reason = s"its sidecar ${sidecar.path} is not in the _sidecars directory"
        throw new UnreadableCheckpoint(checkpoint, reason)
      }
      // The actual size of the file is used: a wrong size in the action would only hide its footer.
      val file = store.status(path).getOrElse {
        throw new UnreadableCheckpoint(checkpoint, s"its sidecar ${sidecar.path} is missing")
      }
      new CheckpointFile(file, conf)
    }

  /** Protocol § Sidecar Files: all are stored in one directory, however the action spells their path. */
  def fileOf(sidecar: Sidecar): Option[Path] =
    Some(LogPath.canonical(sidecarDirectory, sidecar.path))
      .filterNot(name => name.isEmpty || name.contains('/'))
      .map(name => new Path(sidecarDirectory, new Path(null, null, name)))

  private def reads(files: Seq[CheckpointFile]): Seq[RowGroupRead] =
    for (file <- files; rowGroup <- file.rowGroupsWith(FileActions))
      yield new RowGroupRead(table, file, rowGroup)

  /** With fewer row groups than threads, the columns of each are read in two tasks of about the same cost. */
  private def tasksOf(reads: Seq[RowGroupRead]): Seq[() => Unit] =
    if (reads.size >= LogThreads.count) reads.map(r => () => r.readAll())
    else reads.flatMap(r => Seq(() => r.readDetails(), () => r.readRows()))

  private def runAll(checkpoint: Checkpoint, tasks: Seq[() => Unit]): Unit = {
    inParallel(checkpoint, tasks)(task => task())
    ()
  }

  private def inParallel[A, B](checkpoint: Checkpoint, items: Seq[A])(read: A => B): Seq[B] =
    LogThreads.mapInOrder(items.iterator)(item => guarded(checkpoint)(read(item))).toVector

  private def guarded[A](checkpoint: Checkpoint)(read: => A): A =
    try read
    catch {
      case e: UnreadableCheckpoint => throw e
      case NonFatal(e) =>
        throw new UnreadableCheckpoint(
          checkpoint,
          Option(e.getMessage).getOrElse(e.toString),
          e
        )
    }
}

private[deltaic] object CheckpointReader {

  private val FileActions = Set("add", "remove")

  /** A checkpoint without its file actions. */
  private final case class WithoutFiles(state: TableState, sidecars: Seq[Sidecar])

  /** Reads the non-file actions of a file. */
  private final class NonFileRead(file: CheckpointFile) {
    private val wanted = CheckpointRow.NonFileActions.map(_ -> CheckpointFile.Every).toMap
    private val found = Vector.newBuilder[Action]

    def run(): Unit = file.rowGroupsWith(CheckpointRow.NonFileActions).foreach { rowGroup =>
      file.read(rowGroup, wanted, CheckpointRow.RequiredColumns) {
        CheckpointRow.nonFileReader(_)(found += _)
      }
    }

    def actions: Seq[Action] = found.result()
  }
}
