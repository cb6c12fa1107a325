package io.deltaic.spark.optimize

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Expression,
  GetStructField,
  GreaterThanOrEqual,
  LessThanOrEqual,
  Literal
}
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.spark.curve.RowOrder
import io.deltaic.spark.scan.files.{FilterableFiles, ScanFilters}
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.skipping.{FileOverlap, SnapshotStatistics}

/**
 * Selects the files of a clustered table that an incremental clustering rewrites: those that are new, and those
 * with which their rows belong together, as long as a run writes at most so many times the bytes that are new. Besides,
 * files of which many rows are deleted.
 *
 * @param columns the clustering columns by their names, outermost first
 */
private[optimize] final class ClusterSelection(
    table: Path,
    schema: TableSchema,
    columns: Seq[Seq[String]],
    settings: OptimizeSettings,
    zone: ZoneId
) {
  private val names = RowOrder.names(columns)

  /**
   * The files to rewrite. Files that are clustered by other columns than the current ones stay as they are, unless many
   * of their rows are deleted.
   *
   * A small cube is merged as a whole, so that the number of files stays low. Of a large one, the files are merged whose
   * ranges overlap those of the new files. Files of deleted rows are not new, but small cubes may be merged with them.
   *
   * @param mayMerge whether a file of a cube may be merged
   */
  def incremental(
      files: IndexedSeq[AddFile],
      mayMerge: AddFile => Boolean = _ => true
  ): IndexedSeq[RewriteCandidate] = {
    val (added, marked) = files.filter(ClusterTags.mayCluster).partition(ClusterTags.of(_).isEmpty)
    val (deleted, others) = marked.partition(RewriteCandidate.isHeavilyDeleted(_, settings))
    val clustered = others.filter(ofColumns)
    val newBytes = liveBytes(added)
    val deletedBytes = liveBytes(deleted)
    val overlapping = overlaps(added, clustered)
    val cubes = clustered.groupBy(ClusterTags.of).values
      .filter(cube => settings.minCubeBytes.forall(liveBytes(cube) < _))
      .map(_.filter(mayMerge))
      .map(cube => if (isSmall(cube)) cube else cube.filter(overlapping))
      .filter(_.nonEmpty)
      .toSeq
      .sortBy(bytes)
    var mergedBytes = 0L
    val merged = cubes.takeWhile { cube =>
      mergedBytes += bytes(cube)
      val paying = newBytes + (if (isSmall(cube)) deletedBytes else 0L)
      mergedBytes <= (settings.maxWriteAmplification - 1) * paying
    }
    (added ++ deleted ++ merged.flatten).map(RewriteCandidate.required)
  }

  /**
   * The metrics of the result, as delta-spark names them.
   *
   * @param numCubes how many cubes the removed files have become
   */
  def metrics(
      considered: Seq[AddFile],
      removed: Seq[AddFile],
      numCubes: Int
  ): Map[String, Any] = {
    val (clustered, others) = considered.partition(ofColumns)
    Map(
      "inputZCubeFiles" -> sizes(clustered),
      "inputOtherFiles" -> sizes(others),
      "inputNumZCubes" -> clustered.flatMap(ClusterTags.of).distinct.size,
      "mergedFiles" -> sizes(removed),
      "numOutputZCubes" -> (if (removed.isEmpty) 0 else numCubes)
    )
  }

  private def sizes(files: Seq[AddFile]): Map[String, Any] =
    Map("numFiles" -> files.size, "size" -> bytes(files))

  private def isSmall(cube: Seq[AddFile]): Boolean = bytes(cube) <= settings.maxFileBytes

  private def liveBytes(files: Seq[AddFile]): Long =
    files.map(RewriteCandidate.required(_).liveBytes).sum

  private def ofColumns(file: AddFile): Boolean = ClusterTags.of(file).exists(_.columns == names)

  private def bytes(files: Seq[AddFile]): Long = files.map(_.sizeBytes).sum

  /** Those of some files that may have rows in the ranges of values that the others have together. */
  private def overlaps(others: IndexedSeq[AddFile], files: IndexedSeq[AddFile]): Set[AddFile] =
    if (others.isEmpty || files.isEmpty) Set.empty
    else {
      val statistics = SnapshotStatistics.ofFiles(others, schema.skipping, zone)
      val inRange = columns.map(column).flatMap { column =>
        FileOverlap.range(statistics, column).toSeq.flatMap { case (min, max) =>
          Seq(
            GreaterThanOrEqual(column, Literal(min, column.dataType)),
            LessThanOrEqual(column, Literal(max, column.dataType))
          )
        }
      }
      new FilterableFiles(table, 0L, files, schema, zone).select(ScanFilters(inRange)).toSet
    }

  private def column(names: Seq[String]): Expression = {
    val root = schema.all(names.head)
    val attribute: Expression = AttributeReference(root.name, root.dataType)()
    names.tail.foldLeft(attribute) { (struct, name) =>
      val fields = struct.dataType.asInstanceOf[StructType]
      GetStructField(struct, fields.fieldIndex(name), Some(name))
    }
  }
}
