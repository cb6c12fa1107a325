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
object SchemaShims {
  def columns(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)

  def schema(columns: Array[Column]): StructType = CatalogV2Util.v2ColumnsToStructType(columns)

  /** A top-level column by its name as it is; the public factories parse it as SQL. */
  def reference(column: String): NamedReference = FieldReference(Seq(column))

  /** The top-level column that a partitioning is by; none if it is by anything else. */
  def identityColumn(partitioning: Transform): Option[String] = partitioning match {
    case IdentityTransform(FieldReference(Seq(column))) => Some(column)
    case _ => None
  }

  /** What a table is clustered by, each column by the names that lead to it. */
  def clustering(columns: Seq[Seq[String]]): Transform =
    ClusterByTransform(columns.map(FieldReference(_)))

  /** The columns that a transform clusters by; none if it is another one. */
  def clusteringColumns(transform: Transform): Option[Seq[Seq[String]]] =
    ClusterByTransform.unapply(transform).map(_.map(_.fieldNames.toSeq))

  def identityPartitioning(column: String): Transform =
    IdentityTransform(FieldReference(Seq(column)))

  /** Whether texts of this type are compared by their bytes, as bounds and files' statistics are. */
  def isBinary(string: StringType): Boolean =
    string.collationId == CollationFactory.UTF8_BINARY_COLLATION_ID

  /** Whether texts anywhere in the type are compared otherwise. */
  def hasCollation(dataType: DataType): Boolean = dataType.existsRecursively {
    case string: StringType => !isBinary(string)
    case _ => false
  }

  /** The same columns with nullability lifted at every depth. */
  def asNullable(schema: StructType): StructType = schema.asNullable

  /** A view, or a table that only the session catalog knows, for another to be made like it. */
  def sourceOfLike(
      spark: SparkSession,
      catalog: TableCatalog,
      source: TableIdentifier
  ): ResolvedTable = {
    val found = V1Table(spark.sessionState.catalog.getTempViewOrPermanentTableMetadata(source))
    val identifier = Identifier.of(source.database.toArray, source.table)
    ResolvedTable.create(catalog, identifier, found)
  }

  /** What the session catalog lists under a name, if `table` is no more than that. */
  def listed(table: Table): Option[CatalogTable] = table match {
    case V1Table(catalogTable) => Some(catalogTable)
    case _ => None
  }
}
