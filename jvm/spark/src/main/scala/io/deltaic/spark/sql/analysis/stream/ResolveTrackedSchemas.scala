package io.deltaic.spark.sql.analysis.stream

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.NamedStreamingRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.{StreamingRelationV2, WriteToStream}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.{DeltaicTable, TableVersion}
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.stream.{SchemaTracking, SchemaTrackingLog}
import io.deltaic.spark.util.{SessionSettings, TableWithSchema}

/**
 * Gives a source of a stream the columns that its schema tracking log has recorded. It may add an entry to that log: see
 * [[SchemaTracking.analyze]].
 *
 * {{{
 *   StreamingRelationV2 t [a, b]   =>   StreamingRelationV2 t [a, c]
 * }}}
 *
 * When a query starts, the rule checks where its sources record their schemas.
 */
private[spark] final case class ResolveTrackedSchemas(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case write: WriteToStream =>
      requireOwnLocations(write)
      write
    case _ if !plan.isStreaming => plan
    case _ => plan.resolveOperatorsDown {
        case named: NamedStreamingRelation => named.copy(child = inSource(named.child))
        case stream: StreamingRelationV2 => inSource(stream)
      }
  }

  private def inSource(plan: LogicalPlan): LogicalPlan = plan match {
    case alias: SubqueryAlias => alias.copy(child = inSource(alias.child))
    case Source(stream, log, options) if !SchemaTracking.isAnalyzed(options) =>
      SchemaTracking.logOf(spark, log.latest(), options).fold(plan)(tracked(stream, log, _))
    case _ => plan
  }

  private def tracked(
      stream: StreamingRelationV2,
      log: DeltaLog,
      schemas: SchemaTrackingLog
  ): LogicalPlan = {
    val (definition, options) = SchemaTracking.analyze(log, schemas, stream.extraOptions)
    val table = definition.fold(stream.table) { recorded =>
      stream.table match {
        case table: DeltaicTable => table.trackedAs(recorded)
        case changes =>
          val table =
            new DeltaicTable(spark, TableVersion.tracked(log, recorded), Some(changes.name()))
          table.changesToStream(stream.extraOptions)
      }
    }
    val columns = DataTypeUtils.toAttributes(table.asInstanceOf[TableWithSchema].schema())
    stream.copy(
      table = table,
      extraOptions = options,
      output = columns,
      catalog = None,
      identifier = None
    )
  }

  private def requireOwnLocations(write: WriteToStream): Unit = {
    val sources = write.inputQuery.collect { case Source(stream, log, options) =>
      SchemaTracking.logOf(spark, log.latest(), options).map((stream, log, options, _))
    }.flatten
    sources.foreach { case (_, log, options, _) => requireInCheckpoint(write, log, options) }
    sources.groupBy(_._4.toString).values.filter(_.map(_._1).distinct.size > 1).foreach { same =>
      val (_, log, _, schemas) = same.head
      throw DeltaicException(
        "DELTAIC_STREAM_SCHEMA_LOCATION_SHARED",
        Map(
          "table" -> log.table.toString,
          "location" -> schemas.toString,
          "source" -> "a source of the query",
          "other" -> "another source of it"
        )
      )
    }
  }

  private def requireInCheckpoint(
      write: WriteToStream,
      log: DeltaLog,
      options: CaseInsensitiveStringMap
  ): Unit = {
    val allowed =
      SessionSettings.isOn(spark, "streaming.allowSchemaLocationOutsideCheckpointLocation")
    val location = qualified(SchemaTracking.location(options).get)
    val checkpoint = qualified(write.resolvedCheckpointLocation)
    val parents = Iterator.iterate(location)(_.getParent).takeWhile(_ != null)
    if (!allowed && !parents.contains(checkpoint))
      throw DeltaicException(
        "DELTAIC_STREAM_SCHEMA_LOCATION_OUTSIDE_CHECKPOINT",
        Map(
          "table" -> log.table.toString,
          "location" -> location.toString,
          "checkpoint" -> checkpoint.toString
        )
      )
  }

  private def qualified(location: String): Path = {
    val path = new Path(location)
    path.getFileSystem(spark.sessionState.newHadoopConf()).makeQualified(path)
  }

  private object Source {
    def unapply(
        plan: LogicalPlan
    ): Option[(StreamingRelationV2, DeltaLog, CaseInsensitiveStringMap)] = plan match {
      case stream: StreamingRelationV2 if SchemaTracking.isIn(stream.extraOptions) =>
        logOf(stream.table).map((stream, _, stream.extraOptions))
      case _ => None
    }

    private def logOf(table: Table): Option[DeltaLog] = table match {
      case table: DeltaicTable => Some(table.log)
      case changes: ChangesTable => Some(changes.log)
      case _ => None
    }
  }
}
