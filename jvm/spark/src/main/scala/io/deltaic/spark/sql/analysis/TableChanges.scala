package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{NamedStreamingRelation, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.{
  ChangelogTable,
  DataSourceV2Relation,
  ExtractV2Table
}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.{ChangeFeedOptions, DeltaicTable, TableLocation, TableVersion}
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.util.UnsupportedOperation

/**
 * A change data feed read of a table. It stays unresolved until the table is resolved, so that
 * no node above it is resolved with the table's columns instead of those of the changes.
 */
private[spark] final case class TableChanges(
    child: LogicalPlan,
    name: String,
    options: CaseInsensitiveStringMap
) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
  override protected def withNewChildInternal(newChild: LogicalPlan): TableChanges =
    copy(child = newChild)
}

/** A change data feed read of the table at a path. */
private[spark] final case class PathChanges(path: String, options: CaseInsensitiveStringMap)
    extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

private[spark] object TableChanges {

  /**
   * The node by which [[ParsedStatement]] replaces a table that is read with change data feed options.
   *
   * {{{
   *   UnresolvedRelation t [readChangeFeed]   =>   TableChanges [readChangeFeed]
   *                                                +- UnresolvedRelation t
   * }}}
   *
   * Spark resolves a name once in a query, regardless of its options: those of the feed must not apply to
   * another reference to the table.
   */
  def of(table: UnresolvedRelation): Option[TableChanges] =
    if (table.isStreaming) None else ofAny(table)

  /** The same for the source of a stream, too. */
  def ofAny(table: UnresolvedRelation): Option[TableChanges] =
    Option.when(ChangeFeedOptions.areIn(table.options)) {
      val unmarked = table.copy(options = ChangeFeedOptions.removedFrom(table.options))
      unmarked.copyTagsFrom(table)
      TableChanges(unmarked, table.name, table.options)
    }
}

/**
 * Adds markers to plans of Spark Connect, if the session has rules that run before Spark resolves tables. All other plans
 * are marked by the parser, or need no marker: see [[ResolveTableChanges]].
 */
private[spark] object MarkTableChanges extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    // A complete plan: see `ResolveTableChanges.streamIn`.
    val complete = plan.collect { case named: NamedStreamingRelation => named.child }
    plan.resolveOperatorsUp {
      case table: UnresolvedRelation if !complete.exists(_ eq table) =>
        TableChanges.ofAny(table).getOrElse(table)
    }
  }
}

/**
 * Replaces a marker by the changes, once Spark has resolved the table. Also replaces the changelog that Spark's CHANGES
 * clause has loaded from the catalog.
 *
 * {{{
 *   TableChanges [options]              SubqueryAlias t
 *   +- SubqueryAlias t            =>    +- DataSourceV2Relation changes of t
 *      +- DataSourceV2Relation t
 * }}}
 *
 * `spark.read.option("readChangeFeed", true).table(name)` is a complete plan, and needs no marker. As a part of a
 * larger one, as a Spark Connect client sends it, it is refused without a marker: nodes above it may have been resolved
 * with the table's columns.
 *
 * Like the resolution of a table by name, it reads the log.
 */
private[spark] final case class ResolveTableChanges(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (isWholePlan(plan)) changes(plan, "", relationIn(plan).get.options)
    else inPlan(plan.resolveOperatorsDown { case named: NamedStreamingRelation =>
      streamIn(named).getOrElse(named)
    })

  /**
   * `spark.readStream.option("readChangeFeed", true).table(name)`. What is above is not resolved before Spark removes the
   * root of it.
   */
  private def streamIn(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case named: NamedStreamingRelation =>
      streamIn(named.child).map(child => named.copy(child = child))
    case alias: SubqueryAlias => streamIn(alias.child).map(child => alias.copy(child = child))
    case stream @ StreamingRelationV2(_, _, table: DeltaicTable, options, _, _, _, _, _)
        if ChangeFeedOptions.areIn(options) => Some(changesIn(stream, table, options))
    case _ => None
  }

  private def changesIn(
      stream: StreamingRelationV2,
      table: DeltaicTable,
      options: CaseInsensitiveStringMap
  ): LogicalPlan = {
    val changes = table.changesToStream(options)
    val columns = DataTypeUtils.toAttributes(changes.schema())
    stream.copy(
      table = changes,
      extraOptions = options,
      output = columns,
      catalog = None,
      identifier = None
    )
  }

  private def isWholePlan(plan: LogicalPlan): Boolean =
    !plan.analyzed && relationIn(plan).exists(readsChanges)

  private def relationIn(plan: LogicalPlan): Option[DataSourceV2Relation] = plan match {
    case alias: SubqueryAlias => relationIn(alias.child)
    case relation @ ExtractV2Table(_: DeltaicTable) => Some(relation)
    case _ => None
  }

  private def readsChanges(relation: DataSourceV2Relation): Boolean =
    ChangeFeedOptions.areIn(relation.options)

  private def inPlan(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case relation @ ExtractV2Table(table: DeltaicTable) if readsChanges(relation) =>
      throw inLargerPlan(table)
    case StreamingRelationV2(_, _, table: DeltaicTable, options, _, _, _, _, _)
        if ChangeFeedOptions.areIn(options) => throw inLargerPlan(table)
    case relation @ ExtractV2Table(ChangelogTable(changes: ChangesTable, _, true)) =>
      unnamed(relation, changes)
    case TableChanges(child, name, options) if child.resolved => changes(child, name, options)
    case PathChanges(path, options) =>
      val classic = spark.asInstanceOf[org.apache.spark.sql.classic.SparkSession]
      val log = TableLocation.requireExists(classic, TableLocation.log(classic, path))
      val table = new DeltaicTable(classic, TableVersion.ofPath(log, log.latest()))
      relation(table.changes(options), options)
  }

  private def inLargerPlan(table: DeltaicTable) = UnsupportedOperation(
    table.log.table.toString,
    "readChangeFeed of a name within a larger plan, as Spark Connect sends it (table_changes reads the same, and " +
      "load of a path also as a stream),"
  )

  private def changes(
      plan: LogicalPlan,
      name: String,
      options: CaseInsensitiveStringMap
  ): LogicalPlan = plan match {
    case alias: SubqueryAlias => alias.copy(child = changes(alias.child, name, options))
    case ExtractV2Table(table: DeltaicTable) =>
      relation(table.changes(options), options)
    case stream @ StreamingRelationV2(_, _, table: DeltaicTable, _, _, _, _, _, _) =>
      changesIn(stream, table, options)
    case named: NamedStreamingRelation =>
      named.copy(child = changes(named.child, name, options))
    case other =>
      throw DeltaicException(
        "DELTAIC_NAME_IS_NOT_A_TABLE",
        Map("name" -> name, "found" -> s"something else (${other.nodeName})")
      )
  }

  /** Without a catalog and a name: Spark would look the table up again and read its rows. */
  private def relation(table: Table, options: CaseInsensitiveStringMap): LogicalPlan =
    DataSourceV2Relation.create(table, None, None, options)

  /** The same for Spark's CHANGES clause, after Spark has applied its options. */
  private def unnamed(relation: DataSourceV2Relation, changes: ChangesTable): LogicalPlan =
    relation.copy(table = changes, catalog = None, identifier = None)
}
