package io.deltaic.spark.sql.parser

import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical.{
  CreateTable,
  LogicalPlan,
  ReplaceTable,
  TableSpecBase,
  UnresolvedTableSpec
}
import org.apache.spark.sql.connector.catalog.TableCatalog

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.CreateStatement
import io.deltaic.spark.sql.command.CloneRequest

/** The definition of the clone in a CLONE statement, which Spark has parsed as that of an empty table. */
private[parser] object CloneClauses {

  /** What the definition says of the clone. */
  def of(definition: LogicalPlan): CloneRequest = definition match {
    case CreateTable(name: UnresolvedIdentifier, Seq(), Seq(), spec, ifNotExists) =>
      request(name, spec).copy(ifNotExists = ifNotExists)
    case ReplaceTable(name: UnresolvedIdentifier, Seq(), Seq(), spec, orCreate) =>
      request(name, spec).copy(
        statement = if (orCreate) CreateStatement.CreateOrReplace else CreateStatement.Replace
      )
    case _ => refuse("columns, partition columns and rows are those of the source")
  }

  private def request(name: UnresolvedIdentifier, spec: TableSpecBase): CloneRequest =
    spec match {
      case UnresolvedTableSpec(properties, _, options, location, None, None, None, _, Seq())
          if options.options.isEmpty =>
        CloneRequest(
          name.nameParts,
          isShallow = false,
          settings = properties ++ location.map(TableCatalog.PROP_LOCATION -> _)
        )
      case _ => refuse("only TBLPROPERTIES and LOCATION can follow the source")
    }

  private def refuse(reason: String): Nothing =
    throw DeltaicException("DELTAIC_CLONE_INVALID", Map("reason" -> reason))
}
