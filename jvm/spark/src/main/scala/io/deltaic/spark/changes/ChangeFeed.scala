package io.deltaic.spark.changes

import org.apache.hadoop.fs.Path

import io.deltaic.log.CommitFile
import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.schema.{ReadCompatibility, RowTracking}

/** A change, and the commit that made it. */
private[spark] final case class CommittedChange(
    change: FileChange,
    version: Long,
    timestampMs: Long
)

/** Changes of a table's rows that a query can read. Equal sources have the same changes. */
private[spark] trait ChangeSource {
  def table: Path

  /** The last version of the changes, or the version they are based on; for errors. */
  def version: Long

  def changes: IndexedSeq[CommittedChange]

  /** Whether each row has its row ID and row commit version, and copied rows are among the changes. */
  def identifiesRows: Boolean = false

  /** Whether a file with none of the columns of the source is read as nulls instead of rejected. */
  def mayLackColumns: Boolean = false

  /** Whether they are those of a batch of a stream. */
  def isStreaming: Boolean = false
}

/** Exactly these changes. */
private[spark] final case class ListedChanges(
    table: Path,
    version: Long,
    changes: IndexedSeq[CommittedChange],
    override val isStreaming: Boolean = false
) extends ChangeSource

/** Versions of a table from `first` to `last`, both inclusive. */
private[spark] final case class VersionRange(first: Long, last: Long) {
  def isEmpty: Boolean = last < first
}

/**
 * The changes that the commits of a range of versions made, shown with the columns of one version.
 *
 * Two feeds are equal if they have the same table, range, version of the columns, `checksSchema` and `identifiesRows`.
 *
 * @param versions empty for no changes at all
 * @param start the table at the first of them
 * @param read the version whose columns the feed has
 * @param checksSchema whether a version whose data cannot be read with these columns is an error
 */
private[spark] final class ChangeFeed(
    log: DeltaLog,
    val versions: VersionRange,
    start: Snapshot,
    val read: Snapshot,
    checksSchema: Boolean,
    override val identifiesRows: Boolean = false
) extends ChangeSource {
  override def table: Path = log.table

  override def version: Long = versions.last

  /** A table that was overwritten with other columns has older files with none of the current columns. */
  override def mayLackColumns: Boolean = !checksSchema

  private def name: String = table.toString

  /** Read on first use, which is when the plan is final. */
  override lazy val changes: IndexedSeq[CommittedChange] =
    if (versions.isEmpty) Vector.empty
    else {
      requireRecorded(start.protocol, start.metadata, versions.first)
      var protocol = start.protocol
      var metadata = start.metadata
      val found = Vector.newBuilder[CommittedChange]
      log.commits(versions.first, versions.last).foreach { case (commit, timeMs) =>
        protocol = commit.protocol.getOrElse(protocol)
        metadata = commit.metadata.getOrElse(metadata)
        if (commit.protocol.isDefined || commit.metadata.isDefined) {
          TableFeatures.requireReadable(name, commit.version, protocol, Some(metadata))
          requireRecorded(protocol, metadata, commit.version)
        }
        checkMetadata(commit)
        CommitChanges.of(table, commit, identifiesRows).foreach { change =>
          requireIdentified(change, commit.version)
          found += CommittedChange(change, commit.version, timeMs)
        }
      }
      requireCompatible(start.metadata, versions.first)
      found.result()
    }

  /** The metadata of the first commit is in `start`, and nothing older is read. */
  private def checkMetadata(commit: CommitFile): Unit = commit.metadata.foreach { metadata =>
    if (commit.version > versions.first) requireCompatible(metadata, commit.version)
  }

  private def requireRecorded(protocol: Protocol, metadata: Metadata, version: Long): Unit =
    if (identifiesRows) {
      val tracking = RowTracking.of(protocol, metadata)
      if (tracking.isEmpty || tracking != RowTracking.of(read.protocol, read.metadata))
        fail("DELTAIC_CHANGES_ROWS_NOT_TRACKED", version)
    } else if (!ChangeFeed.isRecorded(protocol, metadata))
      fail("DELTAIC_CHANGES_NOT_RECORDED", version)

  /** A commit that replaces a table and enables row tracking removes files from before it. */
  private def requireIdentified(change: FileChange, version: Long): Unit =
    if (
      identifiesRows && change.changeType.contains(ChangeColumns.Delete) &&
      change.file.baseRowId.isEmpty
    ) fail("DELTAIC_CHANGES_ROWS_NOT_TRACKED", version)

  private def requireCompatible(metadata: Metadata, version: Long): Unit = {
    val older = version <= read.version
    if (checksSchema && !ReadCompatibility.ofColumns(metadata, read.metadata, older))
      fail(
        "DELTAIC_CHANGES_SCHEMA_INCOMPATIBLE",
        version,
        "readVersion" -> read.version.toString
      )
  }

  private def fail(condition: String, version: Long, others: (String, String)*): Nothing =
    throw DeltaicException(
      condition,
      Map(
        "table" -> name,
        "version" -> version.toString,
        "first" -> versions.first.toString,
        "last" -> versions.last.toString
      ) ++ others
    )

  private lazy val identity: (Path, VersionRange, Long, String, Boolean, Boolean) =
    (table, versions, read.version, read.metadata.schemaString, checksSchema, identifiesRows)

  override def equals(other: Any): Boolean = other match {
    case that: ChangeFeed => (this eq that) || (hash == that.hash && identity == that.identity)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = identity.hashCode()

  override def toString: String = s"changes of $table, versions ${versions.first}..${versions.last}"
}

private[spark] object ChangeFeed {

  /** Whether writers record changes, or write commits from which they can be derived (Protocol § Change Data Files). */
  def isRecorded(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.isEnabled(protocol, metadata, "changeDataFeed")
}
