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
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.TableWithSchema
import io.deltaic.spark.write.{
  ComputesColumns,
  IdentityColumn,
  PropertyOptions,
  ReplaceWhere,
  TableWriteBuilder,
  WriteTarget,
  WriteTargets
}

/**
 * The table as a write will leave it: one that exists, one that the write creates, or one whose
 * columns it replaces.
 *
 * @param generatedColumns those of a table that keeps its columns
 * @param identityColumns likewise
 * @param displayName what errors call it; its path if there is no other name
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
  override def columns(): Array[Column] = SchemaShims.columns(tableSchema)
  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(BATCH_WRITE, TRUNCATE, OVERWRITE_BY_FILTER, OVERWRITE_DYNAMIC)
  override def partitioning(): Array[Transform] =
    target.partitionColumns.map(SchemaShims.identityPartitioning).toArray
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new TableWriteBuilder(target, info)
  override def writeTarget: WriteTarget = target
  override def forWriting(other: WriteTarget): WriteOnlyTable =
    new WriteOnlyTable(other, tableSchema, generatedColumns, identityColumns, displayName)
}

/**
 * A table that CTAS, RTAS and REPLACE have announced. Its commit holds definition and data; the
 * catalog learns of it afterwards.
 *
 * @param targetWith the table to write, given the properties that a writer's options name
 * @param commitDefinition commits the definition alone, when no rows were written
 * @param register makes the committed table known to the catalog
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

  /** A write that fails cleans up after itself, and nothing else has happened before the commit. */
  override def abortStagedChanges(): Unit = ()
}

/** What `load(path)` gets where there is no table: the save path may create it, a reader fails. */
private[spark] final class AbsentTable(spark: SparkSession, log: DeltaLog) extends TableWithSchema
    with SupportsRead {
  override def name(): String = s"delta.`${log.table}`"
  override def columns(): Array[Column] = notFound
  override def capabilities(): JSet[TableCapability] = EnumSet.of(BATCH_READ, MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = notFound

  private def notFound: Nothing = throw TableLocation.missing(spark, log)
}
