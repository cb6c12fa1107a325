package io.deltaic.spark.catalog

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.{LoadedSnapshot, QuerySnapshots}
import io.deltaic.spark.schema.ReadCompatibility
import io.deltaic.spark.util.UnsupportedOperation

/**
 * The version of a table that a plan reads and changes. It depends on how the table was loaded into the plan.
 *
 * A plan has the columns of the snapshot with which it was analyzed. So any other version must have them, too.
 */
private[spark] sealed trait TableVersion extends Product {
  def log: DeltaLog

  /** The snapshot with which plans are analyzed. */
  def loaded: LoadedSnapshot

  final def snapshot: Snapshot = loaded.snapshot

  /** Whether scans use the snapshots of a query. */
  def isInQuery: Boolean = false

  /** The snapshot that a scan reads. */
  def toRead: Snapshot = snapshot

  /** The snapshot on which a change of the table is based. */
  def toChange: Snapshot = snapshot

  /** Whether Spark may replace the table by a newer version after the analysis of a plan. */
  def isRefreshed: Boolean = false

  /** Whether a commit changes the rows that a plan reads. */
  def followsNewVersions: Boolean = false

  /** Whether two scans of one plan read the same rows even if there are commits in between. */
  def readsOneVersion: Boolean = true

  /** The same version, loaded now and outside of a query. */
  def reloaded: TableVersion

  /** The same, with the snapshots that all scans of a query use. */
  def inQuery(newest: QuerySnapshots): TableVersion = this

  /**
   * The same, pinned to the version of a statement, so that all its reads use the version that its write is based on.
   * A table whose columns have changed since is not pinned, and fails when it is read.
   */
  def pinnedTo(version: Snapshot): TableVersion = this

  /** The same, pinned to the newest version as all reads of the statement see it. */
  def pinnedTo(newest: QuerySnapshots): TableVersion = this

  /**
   * The same for a row-level change of the table: its conditions and its source also read the table at the version
   * that is changed.
   */
  def pinnedToChanged(version: Snapshot): TableVersion =
    if (hasColumns(version)) TableVersion.pinned(log, version) else throw schemaChanged(version)

  /**
   * The version of the target of a command that is planned immediately. Spark may have resolved a name from its cache
   * of tables; the command changes the newest version.
   */
  def forCommand: TableVersion = this

  /** The same for a statement on a view of the table, which may have been created from an older version. */
  def forCommandOnView: TableVersion = forCommand

  /** Whether the user specified the version. */
  def isTimeTravel: Boolean = false

  /** @param operation refused on a version that the user specified */
  def requireNoTimeTravel(operation: String): Unit =
    if (isTimeTravel)
      throw UnsupportedOperation(
        log.table.toString,
        s"$operation of the older version ${snapshot.version}"
      )

  /** Requires that the user of a stream did not specify a version. */
  def requireStreamable(): Unit =
    if (isTimeTravel)
      throw DeltaicException(
        "DELTAIC_STREAM_OPTION_INVALID",
        Map(
          "table" -> log.table.toString,
          "option" -> "versionAsOf",
          "value" -> snapshot.version.toString,
          "reason" -> "a stream reads on from a version. Use option startingVersion or startingTimestamp"
        )
      )

  /** Whether plans for this version are also plans for the other one. */
  def hasSameDefinition(version: Snapshot): Boolean = (version eq snapshot) ||
    version.metadata == snapshot.metadata && version.protocol == snapshot.protocol

  def schemaChanged(latest: Snapshot): DeltaicThrowable = DeltaicException(
    "DELTAIC_SCHEMA_CHANGED",
    Map("table" -> log.table.toString, "version" -> latest.version.toString)
  )

  /** Requires that a newer version still has the columns of this one. */
  protected def withSameColumns(latest: Snapshot): Snapshot =
    if (hasColumns(latest)) latest else throw schemaChanged(latest)

  /** Whether a version has all columns of this one. Its other columns are not in plans for this one. */
  protected def hasColumns(version: Snapshot): Boolean =
    hasSameDefinition(version) ||
    ReadCompatibility.holds(version.metadata, snapshot.metadata, dataIsOlder = false)
}

private[spark] object TableVersion {

  /** Of a table that Spark loads through the catalog. */
  def ofCatalog(log: DeltaLog, snapshot: Snapshot): TableVersion =
    Loaded(log, LoadedSnapshot.of(log, snapshot))

  /**
   * Of a table that is loaded by path, without a catalog.
   *
   * @param snapshot the newest one
   */
  def ofPath(log: DeltaLog, snapshot: Snapshot): TableVersion =
    Latest(log, LoadedSnapshot.of(log, snapshot))

  /** A version that the user specified. */
  def timeTravel(log: DeltaLog, snapshot: Snapshot): TableVersion =
    TimeTravel(log, LoadedSnapshot.of(log, snapshot))

  /**
   * The definition with which a stream reads a table: see [[io.deltaic.spark.stream.SchemaTracking]].
   *
   * @param definition without files
   */
  def tracked(log: DeltaLog, definition: Snapshot): TableVersion = pinned(log, definition)

  /** The version to which a statement is pinned. */
  private def pinned(log: DeltaLog, snapshot: Snapshot): TableVersion =
    Pinned(log, LoadedSnapshot.of(log, snapshot))

  /**
   * The version that Spark has loaded: Spark itself reloads the table for each query. A statement changes that version,
   * regardless of the snapshots of a query.
   */
  private final case class Loaded(
      log: DeltaLog,
      loaded: LoadedSnapshot,
      query: Option[QuerySnapshots] = None
  ) extends TableVersion {
    override def isInQuery: Boolean = query.isDefined
    override def isRefreshed: Boolean = true
    override def followsNewVersions: Boolean = true

    override def toRead: Snapshot = query.fold(snapshot)(q => withSameColumns(q.ofLoaded(log)))

    override def reloaded: TableVersion = ofCatalog(log, snapshot)

    override def inQuery(newest: QuerySnapshots): TableVersion = {
      newest.load(log, loaded)
      copy(query = Some(newest))
    }

    override def forCommand: TableVersion = ofCatalog(log, withSameColumns(log.latest()))
  }

  /** The newest version at each query. */
  private final case class Latest(
      log: DeltaLog,
      loaded: LoadedSnapshot,
      query: Option[QuerySnapshots] = None
  ) extends TableVersion {
    override def isInQuery: Boolean = query.isDefined
    override def followsNewVersions: Boolean = true
    override def readsOneVersion: Boolean = false

    override def toRead: Snapshot = withSameColumns(query.fold(log.latest())(_.of(log)))
    override def toChange: Snapshot = toRead

    override def reloaded: TableVersion = ofPath(log, snapshot)

    override def inQuery(newest: QuerySnapshots): TableVersion = copy(query = Some(newest))

    override def pinnedTo(version: Snapshot): TableVersion =
      if (hasColumns(version)) pinned(log, version) else this

    override def pinnedTo(newest: QuerySnapshots): TableVersion = pinnedTo(newest.of(log))

    override def forCommand: TableVersion = ofCatalog(log, snapshot)

    override def forCommandOnView: TableVersion = ofCatalog(log, withSameColumns(log.latest()))
  }

  /** The version that the user specified. */
  private final case class TimeTravel(log: DeltaLog, loaded: LoadedSnapshot) extends TableVersion {
    override def isTimeTravel: Boolean = true

    override def reloaded: TableVersion = timeTravel(log, snapshot)

    override def pinnedToChanged(version: Snapshot): TableVersion = this
  }

  /** The version to which a statement is pinned, so that all its reads use the version that it changes. */
  private final case class Pinned(log: DeltaLog, loaded: LoadedSnapshot) extends TableVersion {
    override def reloaded: TableVersion = pinned(log, snapshot)
  }
}
