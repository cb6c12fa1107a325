package io.deltaic.replay

import scala.collection.immutable.{HashMap, HashSet}
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol._

/** A checkpoint that cannot be read, for whatever reason: then something older must do. */
private[deltaic] final class UnreadableCheckpoint(
    val checkpoint: Checkpoint,
    val reason: String,
    cause: Throwable = null
) extends Exception(s"${checkpoint.name}: $reason", cause)

/**
 * Reads checkpoints of the V1 and the V2 spec (Protocol § Checkpoint Specs), without Spark.
 *
 * @param bytesInMemory the files of a checkpoint of more bytes are left in it, see [[StoredFiles]]
 */
private[deltaic] final class CheckpointReader(
    table: Path,
    conf: Configuration,
    store: LogStore,
    bytesInMemory: Long
) {
  import CheckpointReader._

  private val commits = new CommitReader(table, store)
  private val sidecarDirectory = FileNames.sidecarDirectory(FileNames.logDirectory(table))

  /**
   * The state that a checkpoint holds.
   *
   * @param isKnownToBeReadable whether the table's protocol is known from elsewhere; if not, the files are left alone
   *   until the checkpoint's own has been judged
   * @param judge is given the state without its files, and refuses a table that this build cannot read
   */
  def read(checkpoint: Checkpoint, isKnownToBeReadable: Boolean)(
      judge: TableState => Unit
  ): TableState =
    if (FileNames.isJson(checkpoint.files.head)) {
      val actions =
        guarded(checkpoint)(commits.readCheckpoint(checkpoint.version, checkpoint.files.head))
      val header = headerOf(checkpoint, actions)
      judge(header.state)
      val files = actions.collect { case file: FileAction => file }
      withFiles(checkpoint, header, open(checkpoint, header.sidecars), files)
    } else {
      val files = inParallel(checkpoint, checkpoint.files)(new CheckpointFile(_, conf))
      val ahead =
        if (isKnownToBeReadable && checkpoint.sizeBytes <= bytesInMemory) Some(reads(files))
        else None
      val headers = files.map(new HeaderRead(_))
      runAll(checkpoint, headers.map(h => () => h.run()) ++ ahead.toSeq.flatMap(tasksOf))
      val header = headerOf(checkpoint, headers.flatMap(_.actions))
      judge(header.state)
      withFiles(checkpoint, header, files ++ open(checkpoint, header.sidecars), Nil, ahead)
    }

  /**
   * Looks whether everything that a checkpoint needs is there, without reading its files' actions.
   *
   * @throws UnreadableCheckpoint when it cannot stand for the commits before it
   */
  def verify(checkpoint: Checkpoint): Unit = {
    val header = headerAlone(checkpoint)
    if (header.state.protocol.isEmpty || header.state.metadata.isEmpty)
      throw new UnreadableCheckpoint(checkpoint, "it lacks the protocol or the metaData action")
    open(checkpoint, header.sidecars)
    ()
  }

  /** The sidecars that a checkpoint names. */
  def sidecars(checkpoint: Checkpoint): Seq[Sidecar] = headerAlone(checkpoint).sidecars

  /** Of its top-level files and its sidecars; None if they cannot be read. */
  def bytesOf(checkpoint: Checkpoint): Option[Long] =
    try {
      val listed = sidecars(checkpoint).flatMap(fileOf(_))
      val sizes = inParallel(checkpoint, listed)(store.status(_).fold(0L)(_.getLen))
      Some(checkpoint.sizeBytes + sizes.sum)
    } catch { case _: UnreadableCheckpoint => None }

  private def headerAlone(checkpoint: Checkpoint): Header =
    if (FileNames.isJson(checkpoint.files.head)) {
      val file = checkpoint.files.head
      headerOf(checkpoint, guarded(checkpoint)(commits.readCheckpoint(checkpoint.version, file)))
    } else {
      val headers =
        inParallel(checkpoint, checkpoint.files)(f => new HeaderRead(new CheckpointFile(f, conf)))
      runAll(checkpoint, headers.map(h => () => h.run()))
      headerOf(checkpoint, headers.flatMap(_.actions))
    }

  /**
   * The header with the checkpoint's files and tombstones. A V2 checkpoint has its file actions in itself or in sidecars;
   * whoever finds both reads both.
   *
   * @param files the checkpoint's own Parquet files, then its sidecars
   * @param readAhead what has been read of the former
   */
  private def withFiles(
      checkpoint: Checkpoint,
      header: Header,
      files: Seq[CheckpointFile],
      inline: Seq[FileAction],
      readAhead: Option[Seq[RowGroupRead]] = None
  ): TableState = {
    val sidecars = files.filterNot(f => checkpoint.files.contains(f.status))
    val sizeBytes = checkpoint.sizeBytes + sidecars.map(_.status.getLen).sum
    val state = header.state.copy(checkpointBytes = sizeBytes)
    if (sizeBytes > bytesInMemory)
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
      header: TableState,
      reads: Seq[RowGroupRead],
      inline: Seq[FileAction]
  ): TableState = {
    val state = header.copy(
      files = FileTable.of(table, guarded(checkpoint)(reads.map(_.result()))),
      tombstones = HashMap.from(reads.iterator.flatMap(_.removes))
    )
    if (inline.isEmpty) state
    else state.advanced(Iterator(new CommitFile(checkpoint.version, 0, inline)))
  }

  private def stored(
      checkpoint: Checkpoint,
      sizeBytes: Long,
      files: Seq[CheckpointFile],
      hasInline: Boolean
  ): StoredFiles = {
    def slice(file: FileStatus, rowGroup: Option[Int]) =
      CheckpointSlice.of(table, checkpoint.version, file, rowGroup)
    val rowGroups = files.flatMap { file =>
      file.rowGroupsWith(FileActions).map(number => slice(file.status, Some(number)))
    }
    val inline = if (hasInline) checkpoint.files.map(slice(_, None)) else Nil
    new StoredFiles(checkpoint, sizeBytes, rowGroups ++ inline, HashSet.empty, conf)
  }

  /** @throws UnreadableCheckpoint when the actions contradict each other, or are not of this version */
  private def headerOf(checkpoint: Checkpoint, actions: Seq[Action]): Header = {
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
    Header(
      TableState.empty(table).copy(
        protocol = protocols.headOption,
        metadata = metadatas.headOption,
        transactions = actions.collect { case t: SetTransaction => t.appId -> t }.toMap,
        domains = actions.collect { case d: DomainMetadata if !d.removed => d.domain -> d }.toMap
      ),
      all { case s: Sidecar => s }
    )
  }

  private def open(checkpoint: Checkpoint, listed: Seq[Sidecar]): Seq[CheckpointFile] =
    inParallel(checkpoint, listed) { sidecar =>
      val path = fileOf(sidecar).getOrElse {
        throw new UnreadableCheckpoint(checkpoint, s"its sidecar ${sidecar.path} lies elsewhere")
      }
      // The file's own size counts: a wrong one in the action would only hide a footer that is there.
      val file = store.status(path).getOrElse {
        throw new UnreadableCheckpoint(checkpoint, s"its sidecar ${sidecar.path} is missing")
      }
      new CheckpointFile(file, conf)
    }

  /** Protocol § Sidecar Files: all lie in one directory, however the action spells their path. */
  def fileOf(sidecar: Sidecar): Option[Path] =
    Some(LogPath.canonical(sidecarDirectory, sidecar.path))
      .filterNot(name => name.isEmpty || name.contains('/'))
      .map(name => new Path(sidecarDirectory, new Path(null, null, name)))

  private def reads(files: Seq[CheckpointFile]): Seq[RowGroupRead] =
    for (file <- files; rowGroup <- file.rowGroupsWith(FileActions))
      yield new RowGroupRead(table, file, rowGroup)

  /** Where there are fewer row groups than threads, the columns are read in two halves of about the same cost. */
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

  /** What a checkpoint holds beside its files. */
  private final case class Header(state: TableState, sidecars: Seq[Sidecar])

  /** The actions of a file that are not about files. */
  private final class HeaderRead(file: CheckpointFile) {
    private val wanted = CheckpointRow.headerActions.map(_ -> CheckpointFile.Every).toMap
    private val found = Vector.newBuilder[Action]

    def run(): Unit = file.rowGroupsWith(CheckpointRow.headerActions).foreach { rowGroup =>
      file.read(rowGroup, wanted, CheckpointRow.headerMarks)(CheckpointRow.header(_)(found += _))
    }

    def actions: Seq[Action] = found.result()
  }
}
