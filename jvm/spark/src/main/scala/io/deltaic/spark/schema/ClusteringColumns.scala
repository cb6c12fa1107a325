package io.deltaic.spark.schema

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.types.{StructField, StructType}

import io.deltaic.protocol.TableFeatures
import io.deltaic.replay.Snapshot
import io.deltaic.spark.util.Json

/** The columns that a table is clustered by (Protocol § Clustered Table). */
private[spark] object ClusteringColumns {
  val Domain = "delta.clustering"

  /** The columns of a version by their physical names, outermost first. */
  def physical(snapshot: Snapshot): Seq[Seq[String]] =
    if (!TableFeatures.supports(snapshot.protocol, "clustering")) Nil
    else snapshot.domains.get(Domain).toSeq.flatMap(domain => physical(domain.configuration))

  /** The columns that a domain's configuration lists: names, or name paths of nested fields. None if it is malformed. */
  def physical(configuration: String): Seq[Seq[String]] = {
    val listed = Json.tryParse(configuration).map(_.path("clusteringColumns")).filter(_.isArray)
    val paths = listed.toSeq.flatMap(_.elements.asScala).map { column =>
      if (column.isArray) column.elements.asScala.toSeq else Seq(column)
    }
    if (!paths.forall(path => path.nonEmpty && path.forall(_.isTextual))) Nil
    else paths.map(_.map(_.textValue))
  }

  /** The same by logical names; without columns that the schema does not have. */
  def logical(snapshot: Snapshot, schema: TableSchema): Seq[Seq[String]] =
    logical(physical(snapshot), schema)

  def logical(physical: Seq[Seq[String]], schema: TableSchema): Seq[Seq[String]] =
    physical.flatMap(logical(_, schema.stored, schema.mapping != ColumnMapping.NoMapping))

  private def logical(
      path: Seq[String],
      struct: StructType,
      columnMapping: Boolean
  ): Option[Seq[String]] = {
    val found = struct.find(PhysicalSchema.nameOf(_, columnMapping) == path.head)
    (found, path.tail) match {
      case (None, _) => None
      case (Some(field), Nil) => Some(Seq(field.name))
      case (Some(StructField(name, inner: StructType, _, _)), rest) =>
        logical(rest, inner, columnMapping).map(name +: _)
      case _ => None
    }
  }
}
