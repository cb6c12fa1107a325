package io.deltaic.spark.catalog

import java.util.Locale

import io.deltaic.replay.Snapshot
import io.deltaic.spark.UnsupportedOperation
import io.deltaic.spark.scan.{ClusteringColumns, TableSchema}

/** What a DataFrame writer says of clustering where the table exists: it may repeat it, as with partitions. */
private[spark] object KeptClustering {

  /** Refuses columns that the table is not clustered by; letter case does not count. */
  def require(snapshot: Snapshot, columns: Seq[Seq[String]]): Unit = {
    val current = ClusteringColumns.logical(snapshot, TableSchema.of(snapshot))
    if (folded(current) != folded(columns))
      throw UnsupportedOperation(
        snapshot.table.toString,
        "to cluster a table that exists by other columns in a DataFrame writer; say so in " +
          "ALTER TABLE ... CLUSTER BY or CREATE OR REPLACE TABLE:"
      )
  }

  private def folded(columns: Seq[Seq[String]]): Seq[Seq[String]] =
    columns.map(_.map(_.toLowerCase(Locale.ROOT)))
}
