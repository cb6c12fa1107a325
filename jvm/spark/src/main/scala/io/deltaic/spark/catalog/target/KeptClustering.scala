package io.deltaic.spark.catalog.target

import io.deltaic.protocol.ColumnNames
import io.deltaic.replay.Snapshot
import io.deltaic.spark.schema.{ClusteringColumns, TableSchema}
import io.deltaic.spark.util.UnsupportedOperation

/** Clustering columns of a DataFrame writer must be those of an existing table, as with partition columns. */
private[spark] object KeptClustering {

  /** Refuses columns that the table is not clustered by, ignoring case. */
  def require(snapshot: Snapshot, columns: Seq[Seq[String]]): Unit = {
    val current = ClusteringColumns.logical(snapshot, TableSchema.of(snapshot))
    if (folded(current) != folded(columns))
      throw UnsupportedOperation(
        snapshot.table.toString,
        "to cluster an existing table by other columns in a DataFrame writer; use " +
          "ALTER TABLE ... CLUSTER BY or CREATE OR REPLACE TABLE:"
      )
  }

  private def folded(columns: Seq[Seq[String]]): Seq[Seq[String]] =
    columns.map(_.map(ColumnNames.folded))
}
