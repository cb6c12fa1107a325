package io.deltaic.replay

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, LogPath}

/**
 * Some `add` actions as columns. Immutable once built; [[FileTable]] determines which rows are live. Serializable, to
 * be sent between processes.
 *
 * A column that no row uses is null, so that a feature costs nothing in tables that do not use it.
 *
 * @param keys the identity of each logical file, see [[FileKey]]; null if the paths are the keys
 * @param partitionColumns names of the partition columns for which any row has a value
 * @param sharedBytes the approximate size in bytes of the values that rows share
 * @param partitionValues per partition column the value of each row; [[FileBlock.Absent]] where a row has none
 */
private[deltaic] final class FileBlock private[replay] (
    val size: Int,
    val paths: Array[String],
    keys: Array[String],
    val sizesBytes: Array[Long],
    val modificationTimesMs: Array[Long],
    val stats: Array[String],
    partitionColumns: Array[String],
    partitionValues: Array[Array[String]],
    val deletionVectors: Array[DeletionVectorDescriptor],
    tags: Array[Map[String, String]],
    baseRowIds: Array[Long],
    defaultRowCommitVersions: Array[Long],
    clusteringProviders: Array[String],
    sharedBytes: Long
) extends Serializable {
  import FileBlock._

  /** The instance of [[Absent]] in this block, which after deserialization differs from the one of the process. */
  private val absent = Absent

  def key(row: Int): String = if (keys == null) paths(row) else keys(row)

  def deletionVector(row: Int): DeletionVectorDescriptor =
    if (deletionVectors == null) null else deletionVectors(row)

  def statsOf(row: Int): String = if (stats == null) null else stats(row)

  def partitionValue(row: Int, column: String): String = {
    var i = 0
    while (i < partitionColumns.length && partitionColumns(i) != column) i += 1
    if (i == partitionColumns.length) null
    else {
      val value = partitionValues(i)(row)
      if (value eq absent) null else value
    }
  }

  /** `dataChange` is false, as in a checkpoint: the row describes the table, not a commit. */
  def add(row: Int): AddFile = AddFile(
    path = paths(row),
    partitionValues = partitionValuesOf(row),
    sizeBytes = sizesBytes(row),
    modificationTimeMs = modificationTimesMs(row),
    dataChange = false,
    stats = Option(statsOf(row)),
    tags = if (tags == null) Map.empty else tags(row),
    deletionVector = Option(deletionVector(row)),
    baseRowId = number(baseRowIds, row),
    defaultRowCommitVersion = number(defaultRowCommitVersions, row),
    clusteringProvider = if (clusteringProviders == null) None else Option(clusteringProviders(row))
  )

  private def partitionValuesOf(row: Int): Map[String, String] = {
    var values = Map.empty[String, String]
    var i = 0
    while (i < partitionColumns.length) {
      val value = partitionValues(i)(row)
      if (value ne absent) values = values.updated(partitionColumns(i), value)
      i += 1
    }
    values
  }

  /** The row of the logical file with this key, -1 if there is none. */
  def find(wanted: String): Int =
    if (size == 0) -1
    else {
      var slot = spread(wanted.hashCode) & (index.length - 1)
      while (index(slot) != 0 && key(index(slot) - 1) != wanted)
        slot = (slot + 1) & (index.length - 1)
      index(slot) - 1
    }

  /** Open addressing with linear probing; each slot holds a row plus one, 0 is free. Built when first needed. */
  @transient private lazy val index: Array[Int] = {
    val slots = new Array[Int](Integer.highestOneBit(math.max(2, size)) * 4)
    var row = 0
    while (row < size) {
      var slot = spread(key(row).hashCode) & (slots.length - 1)
      while (slots(slot) != 0) slot = (slot + 1) & (slots.length - 1)
      slots(slot) = row + 1
      row += 1
    }
    slots
  }

  /** The approximate heap size of the block in bytes, including the index of its keys. */
  lazy val retainedBytes: Long = {
    val pointers = Seq(paths, keys, stats, deletionVectors, tags, clusteringProviders) ++
      partitionValues
    val numbers = Seq(sizesBytes, modificationTimesMs, baseRowIds, defaultRowCommitVersions)
    val slots = 4L * Integer.highestOneBit(math.max(2, size))
    val bytesPerRow =
      pointers.count(_ != null) * PointerBytes + numbers.count(_ != null) * LongBytes
    var bytes = sharedBytes + slots * IntBytes + bytesPerRow * size
    var row = 0
    while (row < size) {
      bytes += stringBytes(paths(row)) + stringBytes(statsOf(row))
      if (keys != null && (keys(row) ne paths(row))) bytes += stringBytes(keys(row))
      if (deletionVector(row) != null) bytes += DeletionVectorBytes
      row += 1
    }
    bytes
  }

  /** Data that is derived from the rows and cached as long as there are snapshots with this block. */
  @transient private lazy val derived = new ConcurrentHashMap[Derivation[_], Derived]

  private[deltaic] def derive[D <: Derived](derivation: Derivation[D]): D =
    derived.computeIfAbsent(derivation, _ => derivation.of(this)).asInstanceOf[D]

  /** Callers may still use derived data that they already have. */
  private[replay] def forgetDerived(): Unit = derived.clear()

  private[replay] def derivedBytes: Long = derived.values.asScala.iterator.map(_.retainedBytes).sum

  /** Copies one row to a builder, for merging blocks. */
  private[replay] def copyTo(builder: FileBlockBuilder, row: Int): Unit = builder.append(
    paths(row),
    key(row),
    partitionValuesOf(row),
    sizesBytes(row),
    modificationTimesMs(row),
    statsOf(row),
    if (tags == null) Map.empty else tags(row),
    deletionVector(row),
    number(baseRowIds, row),
    number(defaultRowCommitVersions, row),
    if (clusteringProviders == null) null else clusteringProviders(row)
  )
}

private[deltaic] object FileBlock {

  /** Derives data from a block. Equal derivations give the same result. */
  trait Derivation[D <: Derived] {
    def of(block: FileBlock): D
  }

  /** See [[FileBlock.derive]]. */
  trait Derived {

    /** Its approximate current heap size in bytes. */
    def retainedBytes: Long
  }

  /** Stands for "no such partition value", which differs from a null one. Compared by reference. */
  val Absent: String = new String("absent")

  /** Stands for an absent number: neither row IDs nor versions are negative. */
  val NoNumber: Long = Long.MinValue

  /** The object layout of the JVM for heaps below 32 GB. */
  private val PointerBytes = 4L
  private val IntBytes = 4L
  private val LongBytes = 8L
  private val StringOverheadBytes = 24L + 16L
  private val DeletionVectorBytes = 200L

  /** Assumes one byte per character, which holds for nearly all paths and statistics. */
  def stringBytes(text: String): Long =
    if (text == null) 0L else StringOverheadBytes + (text.length + 7) / 8 * 8

  private def number(column: Array[Long], row: Int): Option[Long] =
    if (column == null || column(row) == NoNumber) None else Some(column(row))

  /** The low bits of a string's hash are poorly distributed if only few characters differ. */
  private def spread(hash: Int): Int = {
    val h = hash * 0x9e3779b9
    h ^ (h >>> 16)
  }
}

/** The identity of a logical file: its canonical path and its deletion vector (Protocol § Action Reconciliation). */
private[deltaic] object FileKey {

  def of(table: Path, logPath: String, dvId: Option[String]): String = {
    val path = LogPath.canonical(table, logPath)
    // No path contains a NUL, so a path cannot be confused with a pair.
    dvId.fold(path)(id => s"$path\u0000$id")
  }
}
