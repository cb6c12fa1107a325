package io.deltaic.spark.write.parquet

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext
import org.apache.parquet.schema.{GroupType, MessageType, Type}
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.PhysicalSchema

/**
 * Spark's write support, which writes the field IDs of columns, extended to the elements of
 * arrays and the keys and values of maps, if the columns have IDs for them (Protocol §
 * Iceberg Compatibility V2).
 */
private[parquet] final class FieldIdWriteSupport extends ParquetWriteSupport {

  /** The columns of the rows, after `init`. */
  var columns: StructType = _

  override def init(conf: Configuration): WriteContext = {
    val context = super.init(conf)
    columns =
      DataType.fromJson(conf.get(ParquetWriteSupport.SPARK_ROW_SCHEMA)).asInstanceOf[StructType]
    new WriteContext(NestedFieldIds.in(context.getSchema, columns), context.getExtraMetaData)
  }
}

private object NestedFieldIds {

  /** @param columns under their physical names, in the order of the file */
  def in(file: MessageType, columns: StructType): MessageType =
    new MessageType(file.getName, fields(file, columns).asJava)

  private def fields(group: GroupType, struct: StructType): Seq[Type] =
    group.getFields.asScala.toSeq.lazyZip(struct.fields).map { (field, column) =>
      val ids =
        if (column.metadata.contains(PhysicalSchema.NestedIds))
          column.metadata.getMetadata(PhysicalSchema.NestedIds)
        else Metadata.empty
      within(field, column.dataType, column.name, ids)
    }

  /** @param ids of the nearest enclosing column or struct field, by the path from it */
  private def within(node: Type, dataType: DataType, path: String, ids: Metadata): Type =
    dataType match {
      case struct: StructType =>
        val group = node.asGroupType
        group.withNewFields(fields(group, struct).asJava)
      case ArrayType(element, _) => parts(node, Seq("element" -> element), path, ids)
      case MapType(key, value, _) => parts(node, Seq("key" -> key, "value" -> value), path, ids)
      case _ => node
    }

  /** A list or a map is a group with one repeated group, which holds the elements or entries. */
  private def parts(
      node: Type,
      types: Seq[(String, DataType)],
      path: String,
      ids: Metadata
  ): Type = {
    val outer = node.asGroupType
    val repeated = outer.getType(0).asGroupType
    val withIds = repeated.getFields.asScala.toSeq.lazyZip(types).map { case (part, (name, dt)) =>
      val here = s"$path.$name"
      val inner = within(part, dt, here, ids)
      if (ids.contains(here)) inner.withId(ids.getLong(here).toInt) else inner
    }
    outer.withNewFields(repeated.withNewFields(withIds.asJava))
  }
}
