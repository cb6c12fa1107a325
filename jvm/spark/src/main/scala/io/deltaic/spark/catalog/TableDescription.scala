package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaShims

import io.deltaic.protocol.TableProperties
import io.deltaic.replay.Snapshot
import io.deltaic.spark.scan.{ClusteringColumns, TableSchema}
import io.deltaic.spark.write.TableConditions

/**
 * What statements such as `DESCRIBE` and `SHOW` tell of a table beside its columns.
 *
 * @param entry what the session catalog lists, for a table that was found there
 */
private[catalog] final class TableDescription(
    snapshot: Snapshot,
    schema: TableSchema,
    entry: Option[CatalogTable]
) {
  import TableConditions.ConstraintPrefix

  private val metadata = snapshot.metadata
  private val protocol = snapshot.protocol
  private val clusteredBy = ClusteringColumns.logical(snapshot, schema)

  def partitioning: Array[Transform] = {
    val clustering = Option.when(clusteredBy.nonEmpty)(SchemaShims.clustering(clusteredBy))
    (schema.partitionColumns.map(SchemaShims.identityPartitioning) ++ clustering).toArray
  }

  /** The table's own, with what Spark wants to know and what the protocol asks of readers and writers. */
  def properties: Map[String, String] =
    metadata.configuration ++ asked ++ inCatalog ++ Map(
      TableCatalog.PROP_PROVIDER -> TableLocation.provider,
      TableCatalog.PROP_LOCATION -> snapshot.table.toString
    ) ++ metadata.description.map(TableCatalog.PROP_COMMENT -> _)

  /** What the protocol asks for, as the properties that would ask for it again. */
  private def asked: Map[String, String] = {
    val listed = protocol.readerFeatures.getOrElse(Set.empty) ++
      protocol.writerFeatures.getOrElse(Set.empty)
    Map(
      "delta.minReaderVersion" -> protocol.minReaderVersion.toString,
      "delta.minWriterVersion" -> protocol.minWriterVersion.toString
    ) ++ listed.map(feature => s"delta.feature.$feature" -> "supported")
  }

  private def inCatalog: Map[String, String] = entry.fold(Map.empty[String, String]) { listed =>
    val owner = Option(listed.owner).filter(_.nonEmpty).map(TableCatalog.PROP_OWNER -> _)
    val kind =
      if (listed.tableType == CatalogTableType.EXTERNAL) TableCatalog.PROP_EXTERNAL
      else TableCatalog.PROP_IS_MANAGED_LOCATION
    Map(kind -> "true") ++ owner
  }

  /**
   * A statement that makes an empty table like this one. What writers keep for themselves is left out.
   *
   * @param isPath whether the name is the table's path, which says where it lies
   */
  def createStatement(name: String, isPath: Boolean): CreateStatement = {
    val (checks, others) = metadata.configuration.partition(_._1.startsWith(ConstraintPrefix))
    val isManaged = entry.exists(_.tableType == CatalogTableType.MANAGED)
    CreateStatement(
      TableCreation.Create,
      name,
      schema.stored.fields.toSeq,
      schema.partitionColumns,
      clusteredBy,
      metadata.description,
      Option.when(!isPath && !isManaged)(snapshot.table.toString),
      others.filterNot { case (key, _) => TableProperties.isInternal(key) } ++ asked,
      checks.map { case (key, condition) => key.stripPrefix(ConstraintPrefix) -> condition }
    )
  }
}
