package io.deltaic.spark.skipping

import org.apache.spark.sql.types.DataType

/**
 * Files that may be selected or skipped: those of a snapshot, or those that a commit adds.
 *
 * Files are named by their ordinal, from 0 to `size` exclusive. An implementation is immutable and
 * may be read by several threads.
 */
trait FileStatsSource {
  def size: Int

  /**
   * The partition value as the log writes it, or null for a null one.
   *
   * @param column the partition column's name as the log writes it: its physical name under column
   *   mapping
   */
  def partitionValue(i: Int, column: String): String

  /** The statistics as the log writes them, JSON, or null (Protocol § Per-file Statistics). */
  def stats(i: Int): String

  def hasDeletionVector(i: Int): Boolean
}

/**
 * Parses a partition value as the log writes it (never null) into Catalyst's value; throws if it is invalid.
 */
trait PartitionValueParser {
  def parse(value: String, dataType: DataType, column: String): Any
}
