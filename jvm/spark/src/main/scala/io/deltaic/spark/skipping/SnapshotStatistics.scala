package io.deltaic.spark.skipping

import java.time.ZoneId
import java.util.{Collections, Map => JMap, WeakHashMap}

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{FileTable, Snapshot}
import io.deltaic.spark.partition.PartitionValues

/**
 * The statistics of snapshots, decoded once for all queries of this process that read them. Of a distributed snapshot
 * those of the files in memory.
 */
private[spark] object SnapshotStatistics {

  /** Kept as long as their snapshot is; one entry for each time zone that reads partition values. */
  private val known: JMap[Snapshot, Map[ZoneId, FileStatsColumns]] =
    Collections.synchronizedMap(new WeakHashMap())

  /**
   * @param schema the snapshot's
   * @param zone of the session: it reads timestamps in partition values that carry none
   */
  def of(snapshot: Snapshot, schema: SkippingSchema, zone: ZoneId): FileStatsColumns =
    known.synchronized {
      val byZone = known.getOrDefault(snapshot, Map.empty)
      byZone.getOrElse(
        zone, {
          val columns = ofTable(snapshot.filesInMemory, schema, zone)
          known.put(snapshot, byZone + (zone -> columns))
          columns
        }
      )
    }

  /** Of files that are asked about once, such as those that another commit adds. */
  def ofFiles(files: Seq[AddFile], schema: SkippingSchema, zone: ZoneId): FileStatsColumns =
    columnsOf(new AddedFiles(files.toIndexedSeq), schema, zone)

  /** Of files that are kept no longer than what is made of them. */
  def ofTable(files: FileTable, schema: SkippingSchema, zone: ZoneId): FileStatsColumns =
    columnsOf(new ActiveFiles(files), schema, zone)

  private def columnsOf(
      source: FileStatsSource,
      schema: SkippingSchema,
      zone: ZoneId
  ): FileStatsColumns = new FileStatsColumns(
    source,
    schema,
    (value, dataType, column) => PartitionValues.fromLog(column, dataType, value, zone)
  )

  /** Holds the files, not the snapshot: a strong reference to a weak key would keep it for good. */
  private final class ActiveFiles(files: FileTable) extends FileStatsSource {
    override def size: Int = files.size
    override def partitionValue(i: Int, column: String): String = files.partitionValue(i, column)
    override def stats(i: Int): String = files.stats(i)
    override def hasDeletionVector(i: Int): Boolean = files.deletionVector(i) != null
  }

  private final class AddedFiles(files: IndexedSeq[AddFile]) extends FileStatsSource {
    override def size: Int = files.size
    override def partitionValue(i: Int, column: String): String =
      files(i).partitionValues.getOrElse(column, null)
    override def stats(i: Int): String = files(i).stats.orNull
    override def hasDeletionVector(i: Int): Boolean = files(i).deletionVector.isDefined
  }
}
