package io.deltaic.replay

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/** Collects rows of a [[FileBlock]]. Equal partition values, tags and provider names become one object. */
private[replay] final class FileBlockBuilder(table: Path, expectedRows: Int = 16) {
  import FileBlock.NoNumber

  private var capacity = math.max(16, expectedRows)
  private var rows = 0
  private var paths = new Array[String](capacity)
  private var sizesBytes = new Array[Long](capacity)
  private var modificationTimesMs = new Array[Long](capacity)
  private var keys: Array[String] = _
  private var stats: Array[String] = _
  private var deletionVectors: Array[DeletionVectorDescriptor] = _
  private var tags: Array[Map[String, String]] = _
  private var baseRowIds: Array[Long] = _
  private var defaultRowCommitVersions: Array[Long] = _
  private var clusteringProviders: Array[String] = _
  private var partition = new PartitionColumns
  private val shared = mutable.HashMap.empty[AnyRef, AnyRef]

  def size: Int = rows

  def append(add: AddFile, key: String): Unit = append(
    add.path,
    key,
    add.partitionValues,
    add.sizeBytes,
    add.modificationTimeMs,
    add.stats.orNull,
    add.tags,
    add.deletionVector.orNull,
    add.baseRowId,
    add.defaultRowCommitVersion,
    add.clusteringProvider.orNull
  )

  /** Appends a row and computes its key. */
  def append(add: AddFile): Unit = append(add, keyOf(add.path, add.dvId))

  def keyOf(path: String, dvId: Option[String]): String = FileKey.of(table, path, dvId)

  def append(
      path: String,
      key: String,
      partitionValues: Map[String, String],
      sizeBytes: Long,
      modificationTimeMs: Long,
      statsJson: String,
      tagMap: Map[String, String],
      deletionVector: DeletionVectorDescriptor,
      baseRowId: Option[Long],
      defaultRowCommitVersion: Option[Long],
      clusteringProvider: String
  ): Unit = {
    if (rows == capacity) grow()
    val row = rows
    paths(row) = path
    sizesBytes(row) = sizeBytes
    modificationTimesMs(row) = modificationTimeMs
    appendKey(path, key)
    partition.append(partitionValues)
    if (statsJson != null) {
      if (stats == null) stats = new Array(capacity)
      stats(row) = statsJson
    }
    if (deletionVector != null) {
      if (deletionVectors == null) deletionVectors = new Array(capacity)
      deletionVectors(row) = deletionVector
    }
    if (tags == null && tagMap.nonEmpty) tags = Array.fill(capacity)(Map.empty)
    if (tags != null) tags(row) = share(tagMap)
    baseRowIds = appendNumber(baseRowIds, baseRowId)
    defaultRowCommitVersions = appendNumber(defaultRowCommitVersions, defaultRowCommitVersion)
    if (clusteringProvider != null) {
      if (clusteringProviders == null) clusteringProviders = new Array(capacity)
      clusteringProviders(row) = share(clusteringProvider)
    }
    rows += 1
  }

  /** The block of these rows and of details that were collected separately. */
  def resultWith(details: FileDetails): FileBlock = {
    require(details.size == rows, s"details of ${details.size} files for $rows files")
    stats = details.stats
    partition = details.partition
    result()
  }

  def result(): FileBlock = new FileBlock(
    rows,
    trim(paths),
    trim(keys),
    trim(sizesBytes),
    trim(modificationTimesMs),
    trim(stats),
    partition.names,
    partition.values,
    trim(deletionVectors),
    trim(tags),
    trim(baseRowIds),
    trim(defaultRowCommitVersions),
    trim(clusteringProviders),
    partition.sharedBytes + shared.keysIterator.map {
      case text: String => FileBlock.stringBytes(text)
      case map: Map[_, _] => map.iterator.map { case (k, v) => entryBytes(k, v) }.sum
      case _ => 0L
    }.sum
  )

  private def entryBytes(key: Any, value: Any): Long =
    FileBlock.stringBytes(String.valueOf(key)) + FileBlock.stringBytes(String.valueOf(value)) + 16

  private def appendKey(path: String, key: String): Unit = {
    val same = key == path
    if (keys == null && !same) {
      keys = new Array(capacity)
      System.arraycopy(paths, 0, keys, 0, rows)
    }
    if (keys != null) keys(rows) = if (same) path else key
  }

  private def appendNumber(column: Array[Long], value: Option[Long]): Array[Long] =
    if (column == null && value.isEmpty) null
    else {
      val grown = if (column == null) Array.fill(capacity)(NoNumber) else column
      grown(rows) = value.getOrElse(NoNumber)
      grown
    }

  private def share[A <: AnyRef](value: A): A =
    shared.getOrElseUpdate(value, value).asInstanceOf[A]

  private def grow(): Unit = {
    capacity = math.multiplyExact(capacity, 2)
    paths = resize(paths, capacity)
    keys = resize(keys, capacity)
    sizesBytes = resize(sizesBytes, capacity)
    modificationTimesMs = resize(modificationTimesMs, capacity)
    stats = resize(stats, capacity)
    deletionVectors = resize(deletionVectors, capacity)
    tags = resize(tags, capacity)
    baseRowIds = resize(baseRowIds, capacity)
    defaultRowCommitVersions = resize(defaultRowCommitVersions, capacity)
    clusteringProviders = resize(clusteringProviders, capacity)
  }

  private def trim[A](column: Array[A]): Array[A] = resize(column, rows)

  private def resize[A](column: Array[A], length: Int): Array[A] =
    if (column == null || column.length == length) column
    else {
      val copy = java.lang.reflect.Array
        .newInstance(column.getClass.getComponentType, length)
        .asInstanceOf[Array[A]]
      System.arraycopy(column, 0, copy, 0, math.min(column.length, length))
      copy
    }
}
