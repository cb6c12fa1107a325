package io.deltaic.replay

import scala.collection.immutable.HashMap
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.log._
import io.deltaic.protocol._

/** A checkpoint that cannot be read, for whatever reason: then something older must do. */
private[deltaic] final class UnreadableCheckpoint(
    val checkpoint: Checkpoint,
    val reason: String,
    cause: Throwable = null
) extends Exception(s"${checkpoint.name}: $reason", cause)

/** Reads checkpoints of the V1 and the V2 spec (Protocol § Checkpoint Specs), without Spark. */
private[deltaic] final class CheckpointReader(table: Path, conf: Configuration, store: LogStore) {
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
      val ahead = if (isKnownToBeReadable) reads(files) else Nil
      val headers = files.map(new HeaderRead(_))
      runAll(checkpoint, headers.map(h => () => h.run()) ++ tasksOf(ahead))
      val header = headerOf(checkpoint, headers.flatMap(_.actions))
      judge(header.state)
      val more = if (isKnownToBeReadable) open(checkpoint, header.sidecars)
      else files ++ open(checkpoint, header.sidecars)
      withFiles(checkpoint, header, more, Nil, ahead)
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
   * The header with the checkpoint's files and tombstones; each row group becomes one block. A V2 checkpoint has its
   * file actions in itself or in sidecars; whoever finds both reads both.
   */
  private def withFiles(
      checkpoint: Checkpoint,
      header: Header,
      files: Seq[CheckpointFile],
      inline: Seq[FileAction],
      readAhead: Seq[RowGroupRead] = Nil
  ): TableState = {
    val now = reads(files)
    runAll(checkpoint, tasksOf(now))
    val all = readAhead ++ now
    val state = header.state.copy(
      files = FileTable.of(table, guarded(checkpoint)(all.map(_.result()))),
      tombstones = HashMap.from(all.iterator.flatMap(_.removes))
    )
    if (inline.isEmpty) state
    else state.advanced(Iterator(new CommitFile(checkpoint.version, 0, inline)))
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
      // The file's own size counts: a wrong one in the action would only hide a footer that is there.
      val path = LogPath.toAbsolute(sidecarDirectory, sidecar.path)
      val file = store.status(path).getOrElse {
        throw new UnreadableCheckpoint(checkpoint, s"its sidecar ${sidecar.path} is missing")
      }
      new CheckpointFile(file, conf)
    }

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

  /** The files of one row group. Rows and details may be read by two threads at the same time. */
  private final class RowGroupRead(table: Path, file: CheckpointFile, rowGroup: Int) {
    private val block = new FileBlockBuilder(table)
    private val tombstones = Vector.newBuilder[(String, RemoveFile)]
    private var details: FileDetails = _

    def readAll(): Unit = readRows(detailFields)

    def readRows(): Unit = readRows(Set.empty)

    private def readRows(more: Set[String]): Unit =
      file.read(rowGroup, Map("add" -> (addFields ++ more), "remove" -> removeFields)) { record =>
        val add = record.struct("add").map(new AddCells(_)).orNull
        val remove = record.struct("remove").map(new RemoveCells(_)).orNull
        () => {
          if (add != null && add.isDefined) add.appendTo(block)
          if (remove != null && remove.isDefined) {
            val action = remove.read()
            tombstones += FileKey.of(table, action.path, action.dvId) -> action
          }
        }
      }

    /** Statistics and partition values. */
    def readDetails(): Unit = file.read(rowGroup, Map("add" -> detailFields)) { record =>
      val found = new FileDetails
      details = found
      val add = record.struct("add").map(new AddCells(_)).orNull
      () => if (add != null && add.isDefined) add.appendTo(found)
    }

    def removes: Vector[(String, RemoveFile)] = tombstones.result()

    def result(): FileBlock = if (details == null) block.result() else block.resultWith(details)

    /** Statistics are read in one of their two forms: as JSON, if any row of the file has them so, else as a struct. */
    private def detailFields: Set[String] =
      Set("partitionValues", if (file.hasValues("add", "stats")) "stats" else "stats_parsed")
  }
}
