package io.deltaic.spark.catalog

import org.apache.hadoop.fs.Path

import io.deltaic.replay.Snapshot
import io.deltaic.spark.scan.files.{CachedVersions, LocalCommit}

/**
 * Which tables in plans are equal. Spark finds cached data by comparing plans. Data cached at one version must not be
 * used for another, unless this process has refreshed it since (docs/decisions/0004).
 *
 * A table that replaced another at the same path is not equal to it: its metadata id differs.
 */
private[catalog] final class PlanIdentity(
    private val reference: TableReference,
    private val snapshot: Snapshot,
    private[catalog] val cached: CachedData
) {

  def isCachedBefore(commit: LocalCommit): Boolean = cached.versions.areBefore(commit)

  def refreshedTo(commit: LocalCommit): Unit = cached.versions.add(commit)

  /** Takes over the versions of a table that plans refer to in the same way. */
  def replaces(older: PlanIdentity): Unit =
    if (reference == older.reference)
      cached.versions = cached.versions.joinedTo(older.cached.versions)

  override def equals(other: Any): Boolean = other match {
    case that: PlanIdentity =>
      hash == that.hash && reference == that.reference &&
      ((cached.versions eq that.cached.versions) ||
      snapshot.metadata.id == that.snapshot.metadata.id &&
      cached.versions.meet(that.cached.versions))
    case _ => false
  }

  override def hashCode(): Int = hash

  private val hash: Int = reference.hashCode()
}

/**
 * How a plan refers to a table, regardless of the version. A plan of a query equals only plans of queries. A target is
 * never equal to a table that is read, so that a rule that inserts it changes the plan.
 *
 * @param kind of [[TableVersion]]
 * @param partition the partition to which reads are limited, if any
 */
private[catalog] final case class TableReference(
    table: Path,
    kind: String,
    isInQuery: Boolean,
    isTarget: Boolean,
    partition: Option[Path]
)

/** The versions for which data cached from a table is valid. The table's copies in queries share this object. */
private[catalog] final class CachedData(loaded: LocalCommit) {
  @volatile var versions: CachedVersions = new CachedVersions(loaded)
}
