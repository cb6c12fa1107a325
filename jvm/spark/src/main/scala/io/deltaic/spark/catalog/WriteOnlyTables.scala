package io.deltaic.spark.catalog

import java.util.{EnumSet, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.schema.IdentityColumn
import io.deltaic.spark.util.TableWithSchema
import io.deltaic.spark.write.{
  ComputesColumns,
  PropertyOptions,
  ReplaceWhere,
  TableWriteBuilder,
  WriteTarget,
  WriteTargets
}

/**
 * The target table of a write, with its columns after the write: an existing table, one that the write
 * creates, or one whose columns it replaces.
 *
 * @param generatedColumns the generated columns of a table that retains its columns
 * @param identityColumns likewise
 * @param displayName its name in errors; its path if there is none
 */
private[spark] class WriteOnlyTable(
    target: WriteTarget,
    tableSchema: StructType,
    override val generatedColumns: Map[String, String] = Map.empty,
    override val identityColumns: Seq[IdentityColumn] = Nil,
    displayName: Option[String] = None
) extends TableWithSchema
    with SupportsWrite
    with ComputesColumns
    with WriteTargets {
  override def name(): String = displayName.getOrElse(s"delta.`${target.table}`")
  override def location: Path = target.log.table
  override def columns(): Array[Column] = SchemaInternals.columns(tableSchema)
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(BATCH_WRITE, TRUNCATE, OVERWRITE_BY_FILTER, OVERWRITE_DYNAMIC)
  override def partitioning(): Array[Transform] =
    target.partitionColumns.map(SchemaInternals.identityPartitioning).toArray
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new TableWriteBuilder(target, info)
  override def writeTarget: WriteTarget = target
  override def forWriting(other: WriteTarget): WriteOnlyTable =
    new WriteOnlyTable(other, tableSchema, generatedColumns, identityColumns, displayName)
}

/**
 * The staged table of CTAS, RTAS and REPLACE. Its commit holds definition and data; it is registered in the
 * catalog afterwards.
 *
 * @param targetWith the table to write, given the properties in the writer's options
 * @param commitDefinition commits the definition alone, if no rows were written
 * @param register registers the committed table in the catalog
 */
private[spark] final class StagedWriteTable(
    targetWith: Map[String, String] => WriteTarget,
    tableSchema: StructType,
    override val properties: JMap[String, String],
    requireOptions: CaseInsensitiveStringMap => Unit,
    commitDefinition: () => Unit,
    register: () => Unit
) extends WriteOnlyTable(targetWith(Map.empty), tableSchema)
    with StagedTable {
  private var written = false

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    written = true
    requireOptions(info.options)
    val options = info.options.asCaseSensitiveMap.asScala.toMap
    val target = targetWith(PropertyOptions.of(options))
    val isSave = info.options.containsKey(SupportsV1OverwriteWithSaveAsTable.OPTION_NAME)
    if (isSave && target.snapshot.isEmpty) ReplaceWhere.toNewTable(target, tableSchema, info)
    else new TableWriteBuilder(target, info)
  }

  override def commitStagedChanges(): Unit = {
    if (!written) commitDefinition()
    register()
  }

  /** A failed write deletes its own files, and nothing else has happened before the commit. */
  override def abortStagedChanges(): Unit = ()
}

/** The result of `load(path)` without a table: a save may create it, a read fails. */
private[spark] final class AbsentTable(spark: SparkSession, log: DeltaLog) extends TableWithSchema
    with SupportsRead {
  override def name(): String = s"delta.`${log.table}`"
  override def columns(): Array[Column] = notFound
  override def capabilities(): JSet[TableCapability] = EnumSet.of(BATCH_READ, MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = notFound

  private def notFound: Nothing = throw TableLocation.notATableError(spark, log)
}
