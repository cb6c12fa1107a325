package io.deltaic.spark.optimize

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.AddFile
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.util.Json
import io.deltaic.spark.write.files.DataWriteSpec

/**
 * The metrics of a rewrite, as delta-spark names them.
 *
 * @param considered the files in the partitions of the command
 * @param ofOrder those of the order that the rows were given
 */
private[optimize] final case class RewriteMetrics(
    startedAtMs: Long,
    considered: Seq[AddFile],
    numGroups: Int,
    numBatches: Int,
    removed: Seq[AddFile],
    added: Seq[AddFile],
    ofOrder: Map[String, Any]
) {

  def json(spark: SparkSession, schema: TableSchema, spec: DataWriteSpec): ObjectNode = {
    val vectors = removed.flatMap(_.deletionVector)
    Json.obj(
      "numFilesAdded" -> added.size,
      "numFilesRemoved" -> removed.size,
      "filesAdded" -> sizesOf(added),
      "filesRemoved" -> sizesOf(removed),
      "partitionsOptimized" -> numGroups,
      "numBins" -> numGroups,
      "numBatches" -> numBatches,
      "totalConsideredFiles" -> considered.size,
      "totalFilesSkipped" -> (considered.size - removed.size),
      "preserveInsertionOrder" -> ofOrder.isEmpty,
      "numFilesSkippedToReduceWriteAmplification" -> 0,
      "numBytesSkippedToReduceWriteAmplification" -> 0,
      "startTimeMs" -> startedAtMs,
      "endTimeMs" -> System.currentTimeMillis(),
      "totalClusterParallelism" -> spark.sparkContext.defaultParallelism,
      "totalScheduledTasks" -> 0,
      "deletionVectorStats" -> Option.when(vectors.nonEmpty)(Map[String, Any](
        "numDeletionVectorsRemoved" -> vectors.size,
        "numDeletionVectorRowsRemoved" -> vectors.map(_.cardinality).sum
      )),
      "numTableColumns" -> schema.all.size,
      "numTableColumnsWithStats" -> (spec.numColumnsWithStatistics + schema.partition.size)
    ).setAll[ObjectNode](Json.of(ofOrder).asInstanceOf[ObjectNode])
  }

  private def sizesOf(files: Seq[AddFile]): Map[String, Any] = {
    val sizes = files.map(_.sizeBytes)
    Map(
      "min" -> sizes.minOption,
      "max" -> sizes.maxOption,
      "avg" -> (if (sizes.isEmpty) 0.0 else sizes.sum.toDouble / sizes.size),
      "totalFiles" -> sizes.size,
      "totalSize" -> sizes.sum
    )
  }
}

private[optimize] object RewriteMetrics {

  /** Metrics of ZORDER BY. There are no cubes. */
  def ofZOrder(
      considered: Seq[AddFile],
      removed: Seq[AddFile],
      numGroups: Int
  ): Map[String, Any] = {
    def sizes(files: Seq[AddFile]): Map[String, Any] =
      Map("num" -> files.size, "size" -> files.map(_.sizeBytes).sum)
    Map(
      "zOrderStats" -> Map[String, Any](
        "strategyName" -> "all",
        "inputCubeFiles" -> sizes(Nil),
        "inputOtherFiles" -> sizes(considered),
        "inputNumCubes" -> 0,
        "mergedFiles" -> sizes(removed),
        "numOutputCubes" -> numGroups
      )
    )
  }

  /** Of a commit: the sizes of the new files, as the history shows them, and how many rows have kept their row IDs. */
  def ofCommit(added: Seq[AddFile], spec: DataWriteSpec): Map[String, Long] = {
    val preserved =
      if (spec.numRowTrackingColumns == 0) 0L else added.flatMap(CommitFiles.rows).sum
    sizes(added) + ("numPreservedRows" -> preserved)
  }

  private def sizes(added: Seq[AddFile]): Map[String, Long] = {
    val sorted = added.map(_.sizeBytes).sorted.toIndexedSeq
    if (sorted.isEmpty) Map.empty
    else
      Seq("min" -> 0.0, "p25" -> 0.25, "p50" -> 0.5, "p75" -> 0.75, "max" -> 1.0).map {
        case (name, share) =>
          s"${name}FileSize" -> sorted((share * sorted.size).toInt.min(sorted.size - 1))
      }.toMap
  }
}
