package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{
  CatalogV2Util,
  Column,
  Identifier,
  Table,
  TableCatalog,
  V1Table
}
import org.apache.spark.sql.connector.expressions.{
  ClusterByTransform,
  FieldReference,
  IdentityTransform,
  NamedReference,
  Transform
}
import org.apache.spark.sql.types.{DataType, StringType, StructType}

/** Conversions between the schemas of Spark's connectors and its own. */
object SchemaInternals {
  def columns(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)

  def schema(columns: Array[Column]): StructType = CatalogV2Util.v2ColumnsToStructType(columns)

  /** A top-level column by its literal name; the public factories parse the name as SQL. */
  def reference(column: String): NamedReference = FieldReference(Seq(column))

  /** The top-level column that a partitioning is by; none if it is by anything else. */
  def identityColumn(partitioning: Transform): Option[String] = partitioning match {
    case IdentityTransform(FieldReference(Seq(column))) => Some(column)
    case _ => None
  }

  /** The clustering of a table, each column as a name path. */
  def clustering(columns: Seq[Seq[String]]): Transform =
    ClusterByTransform(columns.map(FieldReference(_)))

  /** The columns that a transform clusters by; none if it is another one. */
  def clusteringColumns(transform: Transform): Option[Seq[Seq[String]]] =
    ClusterByTransform.unapply(transform).map(_.map(_.fieldNames.toSeq))

  def identityPartitioning(column: String): Transform =
    IdentityTransform(FieldReference(Seq(column)))

  /** Whether strings of this type are compared by their bytes, as in file statistics. */
  def isBinary(string: StringType): Boolean =
    string.collationId == CollationFactory.UTF8_BINARY_COLLATION_ID

  /** Whether strings anywhere in the type are compared differently. */
  def hasCollation(dataType: DataType): Boolean = dataType.existsRecursively {
    case string: StringType => !isBinary(string)
    case _ => false
  }

  /** The same columns with nullability lifted at every depth. */
  def asNullable(schema: StructType): StructType = schema.asNullable

  /** A view, or a table that only the session catalog has, as the source of CREATE TABLE LIKE. */
  def sourceOfLike(
      spark: SparkSession,
      catalog: TableCatalog,
      source: TableIdentifier
  ): ResolvedTable = {
    val found = V1Table(spark.sessionState.catalog.getTempViewOrPermanentTableMetadata(source))
    val identifier = Identifier.of(source.database.toArray, source.table)
    ResolvedTable.create(catalog, identifier, found)
  }

  /** The session catalog's entry, if `table` is only that. */
  def listed(table: Table): Option[CatalogTable] = table match {
    case V1Table(catalogTable) => Some(catalogTable)
    case _ => None
  }
}
