package io.deltaic.replay

import scala.collection.mutable

/** Collects the partition values of files, by column; rows share equal values. */
private[replay] final class PartitionColumns {
  import FileBlock.Absent

  private var capacity = 16
  private var rows = 0
  private val columns = mutable.LinkedHashMap.empty[String, Array[String]]
  private val shared = mutable.HashMap.empty[String, String]

  def size: Int = rows

  def append(values: Map[String, String]): Unit = {
    if (rows == capacity) {
      capacity = math.multiplyExact(capacity, 2)
      columns.mapValuesInPlace((_, column) => java.util.Arrays.copyOf(column, capacity))
    }
    if (columns.nonEmpty) columns.valuesIterator.foreach(_(rows) = Absent)
    if (values.nonEmpty) {
      values.foreach { case (column, value) =>
        columns.getOrElseUpdate(column, Array.fill(capacity)(Absent))(rows) =
          if (value == null) null else shared.getOrElseUpdate(value, value)
      }
    }
    rows += 1
  }

  def names: Array[String] = columns.keysIterator.toArray

  /** Per column the value of each row; [[FileBlock.Absent]] where a row has none. */
  def values: Array[Array[String]] =
    columns.valuesIterator.map(java.util.Arrays.copyOf(_, rows)).toArray

  /** The approximate size in bytes of the values that rows share. */
  def sharedBytes: Long = shared.keysIterator.map(FileBlock.stringBytes).sum
}

/** Fields of files that are read separately from the others, in file order. */
private[replay] final class FileDetails {
  private val statsJson = mutable.ArrayBuffer.empty[String]
  val partition = new PartitionColumns

  /** @param stats null if there are none */
  def append(stats: String, partitionValues: Map[String, String]): Unit = {
    statsJson += stats
    partition.append(partitionValues)
  }

  def size: Int = statsJson.size

  /** Null if no file has any. */
  def stats: Array[String] = if (statsJson.forall(_ == null)) null else statsJson.toArray
}
