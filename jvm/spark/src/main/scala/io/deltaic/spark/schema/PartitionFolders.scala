package io.deltaic.spark.schema

import io.deltaic.replay.Snapshot

/** The folder names of a table's partitions: `a=1/b=x`, in the order of the columns. */
private[spark] object PartitionFolders {

  /** @return the folder for partition values as in the log */
  def of(snapshot: Snapshot): Map[String, String] => String = {
    val schema = TableSchema.of(snapshot)
    val inLog = schema.partitionColumns.map(schema.logName)
    values =>
      PartitionPaths.directory(
        schema.partitionColumns,
        inLog.map(name => values.get(name).filter(v => v != null && v.nonEmpty).orNull)
      )
  }
}
