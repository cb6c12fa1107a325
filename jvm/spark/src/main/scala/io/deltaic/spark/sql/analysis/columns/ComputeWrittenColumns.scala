package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.schema.{IdentityColumn, IdentityValue}
import io.deltaic.spark.write.{ComputedColumns, ComputesColumns}

/**
 * Computes the generated and identity columns that the rows of an append or an overwrite lack. Errors about
 * nulls in NOT NULL columns name the table.
 *
 * Spark has filled them with null, in a projection of its own. There, a column that the user specifies,
 * even as null, references a column of the query.
 *
 * {{{
 *   AppendData t                                AppendData t
 *   +- Project [a, null AS g]            =>     +- Project [a, f(a) AS g]
 *      +- query                                    +- Project [a, null AS g]
 *                                                     +- query
 * }}}
 */
private[spark] final case class ComputeWrittenColumns(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case write: AppendData => computed(write)
    case write: OverwriteByExpression => computed(write)
    case write: OverwritePartitionsDynamic => computed(write)
  }

  private def computed(write: V2WriteCommand): LogicalPlan = (write.table, write.query) match {
    case (relation @ ExtractV2Table(table: ComputesColumns), rows: Project)
        if rows.resolved && write.outputResolved =>
      val checked = RequiredValue.naming(rows, table.location.toString)
      val all =
        if (table.computesColumns) withComputed(write, relation, table, checked) else checked
      if (all eq rows) write else write.withNewQuery(all)
    case _ => write
  }

  private def withComputed(
      write: V2WriteCommand,
      relation: DataSourceV2Relation,
      table: ComputesColumns,
      rows: Project
  ): Project = {
    // With columns by position, as from a MERGE, none is left out.
    val left = if (write.isByName) leftOut(rows) else Set.empty[String]
    requireNotGiven(relation, table, rows, left)
    withGenerated(withIdentity(rows, left, table), left, relation, table)
  }

  private def leftOut(rows: Project): Set[String] = rows.projectList.collect {
    case filled: Alias
        if filled.explicitMetadata.isDefined && filled.references.isEmpty &&
        !isComputed(filled) =>
      filled.name
  }.toSet

  private def isComputed(column: NamedExpression): Boolean =
    column.exists(_.isInstanceOf[IdentityValue]) || ComputedColumns.hasUuidPrefix(column.metadata)

  /** Protocol § Identity Columns: some do not allow explicit values. */
  private def requireNotGiven(
      relation: DataSourceV2Relation,
      table: ComputesColumns,
      rows: Project,
      left: Set[String]
  ): Unit = table.identityColumns.filterNot(_.allowExplicitInsert).foreach { column =>
    val isGiven = !left(column.name) &&
      rows.projectList.exists(c => c.name == column.name && !isComputed(c))
    if (isGiven) throw IdentityColumn.explicitInsert(relation.name, column.name)
  }

  private def withIdentity(rows: Project, left: Set[String], table: ComputesColumns): Project = {
    val columns = table.identityColumns.filter(c => left(c.name)).map(c => c.name -> c).toMap
    if (columns.isEmpty) rows
    else
      Project(
        rows.output.map { column =>
          columns.get(column.name).fold[NamedExpression](column) { identity =>
            computedAs(column, identity.value(table.toString))
          }
        },
        rows
      )
  }

  private def withGenerated(
      rows: Project,
      left: Set[String],
      relation: DataSourceV2Relation,
      table: ComputesColumns
  ): Project = {
    val columns = table.generatedColumns.filter { case (name, _) => left(name) }
    if (columns.isEmpty) rows
    else {
      val classic = spark.asInstanceOf[org.apache.spark.sql.classic.SparkSession]
      val values = new ColumnValues(classic, limited(relation), columns)
      val output = rows.output
      def valueOf(base: String): Attribute = output.find(_.name == base).get
      Project(
        output.map { column =>
          if (values.isGenerated(column.name))
            computedAs(column, values.of(column.name, valueOf))
          else column
        },
        rows
      )
    }
  }

  /** Restores CHAR and VARCHAR metadata: Spark removes it once it has checked the lengths of specified values. */
  private def limited(relation: DataSourceV2Relation): StructType = {
    val columns = SchemaInternals.schema(relation.table.columns)
    val declared = columns.map(c => c.name -> c.metadata).toMap
    StructType(relation.schema.map { column =>
      column.copy(metadata = declared.getOrElse(column.name, column.metadata))
    })
  }

  private def computedAs(column: Attribute, value: Expression): NamedExpression =
    Alias(value, column.name)(explicitMetadata = Some(ComputedColumns.marked(column.metadata)))
}
