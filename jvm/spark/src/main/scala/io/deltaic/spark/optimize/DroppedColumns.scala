package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path
import org.apache.parquet.schema.{GroupType, Type}
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.schema.{ColumnMapping, PhysicalSchema}
import io.deltaic.spark.util.ParquetFiles
import io.deltaic.spark.write.WriteTransaction

/**
 * Finds the files that hold columns which the table no longer has. Only a table with column mapping can drop
 * columns without rewriting its files. The footers of all files are read, in tasks.
 */
private[optimize] object DroppedColumns {

  /** The paths of these files, as in the log. */
  def in(transaction: WriteTransaction, files: Seq[AddFile]): Set[String] =
    if (files.isEmpty || transaction.schema.mapping == ColumnMapping.NoMapping) Set.empty
    else {
      val schema = transaction.schema
      val spec = transaction.copySpec
      val columns = StructType(
        PhysicalSchema.of(schema.stored, columnMapping = true) ++
          schema.rowTracking.toSeq.flatMap(_.materialized)
      )
      val slots = SessionInternals.leafParallelism(transaction.spark)
      val perTask = (files.size / (slots * TasksOfSlot)).max(1)
      val table = transaction.log.table.toString
      JobInternals.inExecutors(
        transaction.spark,
        transaction.jobs(s"find dropped columns in ${files.size} files"),
        files.map(_.path).grouped(perTask).toSeq
      ) { paths =>
        paths.iterator.filter { path =>
          val location = LogPath.toAbsolute(new Path(table), path)
          Using.resource(ParquetFiles.open(location, spec.hadoopConf)) { reader =>
            hasOthers(reader.getFileMetaData.getSchema, columns)
          }
        }
      }.toSet
    }

  private val TasksOfSlot = 4

  private def hasOthers(group: GroupType, columns: StructType): Boolean =
    group.getFields.asScala.exists { stored =>
      columns.find(_.name == stored.getName).forall(column => isOther(stored, column.dataType))
    }

  /** Whether a stored column holds fields that its type does not have. */
  private def isOther(stored: Type, dataType: DataType): Boolean = dataType match {
    case _ if stored.isPrimitive => false
    case struct: StructType => hasOthers(stored.asGroupType, struct)
    case ArrayType(element, _) => isOther(elementOf(stored.asGroupType.getType(0)), element)
    case MapType(key, value, _) =>
      val entry = stored.asGroupType.getType(0).asGroupType
      isOther(entry.getType(0), key) || isOther(entry.getType(1), value)
    case _ => false
  }

  /** Of the group `list` of the Parquet format. */
  private def elementOf(repeated: Type): Type =
    if (repeated.isPrimitive || repeated.asGroupType.getFieldCount != 1) repeated
    else repeated.asGroupType.getType(0)
}
