package io.deltaic.spark.optimize

import java.util.UUID

import io.deltaic.protocol.AddFile
import io.deltaic.spark.curve.RowOrder

/**
 * How a file says by which columns its rows are clustered, and with which other files: together they are a cube.
 * The tags are those of delta-spark (Protocol § Clustered Table, `clusteringProvider`).
 */
private[optimize] object ClusterTags {
  private val CubeId = "ZCUBE_ID"
  private val Columns = "ZCUBE_ZORDER_BY"
  private val Provider = "liquid"

  /** Whether we may cluster a file: not one that another implementation has clustered. */
  def mayCluster(file: AddFile): Boolean = file.clusteringProvider.forall(_ == Provider)

  /** The cube of a file that is clustered, and by which columns; none if it is not. */
  def of(file: AddFile): Option[Cube] =
    for {
      _ <- file.clusteringProvider.filter(_ == Provider)
      id <- file.tags.get(CubeId)
      columns <- file.tags.get(Columns)
    } yield Cube(id, columns)

  /** Marks a file whose rows are those of others in their order: it belongs to their cube, if they share one. */
  def copied(file: AddFile, inputs: Seq[AddFile]): AddFile =
    if (inputs.isEmpty || inputs.map(of).distinct.size > 1) file
    else {
      val tags = inputs.head.tags.filter { case (name, _) => name == CubeId || name == Columns }
      file.copy(
        tags = file.tags ++ tags,
        clusteringProvider = inputs.head.clusteringProvider
      )
    }

  /** Marks files as one new cube. */
  def marked(files: Seq[AddFile], columns: Seq[Seq[String]]): Seq[AddFile] = {
    val tags = Map(CubeId -> UUID.randomUUID.toString, Columns -> RowOrder.names(columns))
    files.map(file => file.copy(tags = file.tags ++ tags, clusteringProvider = Some(Provider)))
  }
}

/**
 * Files that have been clustered together.
 *
 * @param columns a JSON array of the names of columns
 */
private[optimize] final case class Cube(id: String, columns: String)
