package io.deltaic.spark.write.files

import java.time.ZoneId

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.maintenance._
import io.deltaic.protocol.{DeltaicThrowable, TableFeatures, TableProperties}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.schema.{
  ClusteringColumns,
  ColumnMapping,
  PartitionValues,
  PhysicalSchema,
  TableSchema
}

/**
 * The columns that a table's checkpoints also store as structs: statistics of the columns that
 * have them in new files, and partition values (Protocol § Checkpoints).
 */
private[spark] object CheckpointColumns {

  /** @param zone to parse timestamps in partition values that have no zone */
  def of(snapshot: Snapshot, zone: ZoneId): CheckpointLayout = {
    def isSet(property: String): Boolean =
      TableProperties.isTrue(snapshot.metadata.configuration, property)
    val schema = TableSchema.of(snapshot)
    val asStruct = isSet("delta.checkpoint.writeStatsAsStruct")
    CheckpointLayout(
      isSet("delta.checkpoint.writeStatsAsJson"),
      Option.when(asStruct)(statistics(snapshot, schema)),
      if (asStruct) schema.partitionColumns.map(partition(schema, _, zone)) else Nil
    )
  }

  private def statistics(snapshot: Snapshot, schema: TableSchema): StatsLayout = {
    val mapped = schema.mapping != ColumnMapping.NoMapping
    val columns = StatisticsColumns.select(
      StructType(schema.stored.filterNot(f => schema.isPartition(f.name))),
      snapshot.metadata.configuration,
      PhysicalSchema.nameOf(_, mapped),
      ClusteringColumns.physical(snapshot)
    )
    StatsLayout(
      columns.roots.flatMap(parsed(_) { leaf =>
        if (!FileStatistics.hasBounds(leaf.dataType)) None
        else if (leaf.mayHoldFloats) Some(ParsedType.WidenedFloat)
        else typeOf(leaf.dataType)
      }),
      columns.roots.flatMap(parsed(_)(_ => Some(ParsedType.Int64))),
      TableFeatures.isListed(snapshot.protocol, "deletionVectors")
    )
  }

  /** None if no column below it has statistics. */
  private def parsed(node: StatisticsNode)(
      kind: StatisticsLeaf => Option[ParsedType]
  ): Option[ParsedColumn] = node match {
    case leaf: StatisticsLeaf => kind(leaf).map(ParsedLeaf(leaf.name, _))
    case StatisticsGroup(name, children) =>
      Some(children.flatMap(parsed(_)(kind))).filter(_.nonEmpty).map(ParsedGroup(name, _))
  }

  private def partition(schema: TableSchema, column: String, zone: ZoneId): PartitionLayout = {
    val dataType = schema.stored(column).dataType
    val kind = typeOf(dataType).getOrElse(
      throw new IllegalArgumentException(s"a partition column of type ${dataType.sql}")
    )
    PartitionLayout(
      schema.logName(column),
      kind,
      text =>
        try Some(plain(PartitionValues.fromLog(column, dataType, text, zone)))
        catch { case _: DeltaicThrowable => None }
    )
  }

  private def plain(value: Any): Any = value match {
    case text: UTF8String => text.toString
    case decimal: Decimal => decimal.toJavaBigDecimal
    case byte: Byte => byte.toInt
    case short: Short => short.toInt
    case other => other
  }

  private def typeOf(dataType: DataType): Option[ParsedType] = dataType match {
    case BooleanType => Some(ParsedType.Bool)
    case ByteType => Some(ParsedType.Int8)
    case ShortType => Some(ParsedType.Int16)
    case IntegerType => Some(ParsedType.Int32)
    case LongType => Some(ParsedType.Int64)
    case FloatType => Some(ParsedType.Float32)
    case DoubleType => Some(ParsedType.Float64)
    case decimal: DecimalType => Some(ParsedType.Decimal(decimal.precision, decimal.scale))
    case _: StringType => Some(ParsedType.Text)
    case BinaryType => Some(ParsedType.Bytes)
    case DateType => Some(ParsedType.Date)
    case TimestampType => Some(ParsedType.Timestamp)
    case TimestampNTZType => Some(ParsedType.TimestampNtz)
    case _ => None
  }
}
