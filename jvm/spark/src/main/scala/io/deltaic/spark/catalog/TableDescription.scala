package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaInternals

import io.deltaic.protocol.TableProperties
import io.deltaic.replay.Snapshot
import io.deltaic.spark.schema.{ClusteringColumns, TableConditions, TableSchema}

/**
 * The description of a table beside its columns, for statements such as `DESCRIBE` and `SHOW`.
 *
 * @param entry its entry in the session catalog, if it was loaded by name
 */
private[catalog] final class TableDescription(
    snapshot: Snapshot,
    schema: TableSchema,
    entry: Option[CatalogTable]
) {
  import TableConditions.{isConstraint, ConstraintPrefix}

  private val metadata = snapshot.metadata
  private val protocol = snapshot.protocol
  private val clusteredBy = ClusteringColumns.logical(snapshot, schema)

  def partitioning: Array[Transform] = {
    val clustering = Option.when(clusteredBy.nonEmpty)(SchemaInternals.clustering(clusteredBy))
    (schema.partitionColumns.map(SchemaInternals.identityPartitioning) ++ clustering).toArray
  }

  /** The table's properties, with those that Spark reserves and those that describe the protocol. */
  def properties: Map[String, String] =
    metadata.configuration ++ ofProtocol ++ inCatalog ++ Map(
      TableCatalog.PROP_PROVIDER -> TableLocation.provider,
      TableCatalog.PROP_LOCATION -> snapshot.table.toString
    ) ++ metadata.description.map(TableCatalog.PROP_COMMENT -> _)

  /** The table's protocol, as the properties that would request it. */
  private def ofProtocol: Map[String, String] = {
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
   * A statement that creates an empty table like this one. Internal properties are left out.
   *
   * @param isPath whether the name is the table's path, which is its location
   */
  def createStatement(name: String, isPath: Boolean): CreateStatement = {
    val (checks, others) = metadata.configuration.partition { case (key, _) => isConstraint(key) }
    val isManaged = entry.exists(_.tableType == CatalogTableType.MANAGED)
    CreateStatement(
      CreateStatement.Create,
      name,
      schema.stored.fields.toSeq,
      schema.partitionColumns,
      clusteredBy,
      metadata.description,
      Option.when(!isPath && !isManaged)(snapshot.table.toString),
      others.filterNot { case (key, _) => TableProperties.isInternal(key) } ++ ofProtocol,
      checks.map { case (key, condition) => key.drop(ConstraintPrefix.length) -> condition }
    )
  }
}
