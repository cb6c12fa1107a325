package io.deltaic.replay

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.io.api.{GroupConverter, RecordMaterializer}
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, MessageType, Type}
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}

/**
 * A Parquet file of actions, each row of which has one struct that is not null (Protocol § Checkpoint Schema). Columns
 * that are missing count as null, unknown ones are not read. Its row groups can be read at the same time.
 */
private[replay] final class CheckpointFile(val status: FileStatus, conf: Configuration) {
  import CheckpointFile._

  private val input = HadoopInputFile.fromStatus(status, conf)

  /** New ones for each reader: they hold its decompressors, which it releases when it is closed. */
  private def options: ParquetReadOptions =
    HadoopReadOptions.builder(conf, status.getPath).build()

  private val footer: ParquetMetadata = {
    val stream = input.newStream()
    try ParquetFileReader.readFooter(input, options, stream)
    finally stream.close()
  }

  private val rowGroups = footer.getBlocks.asScala.toVector

  /** The row groups that hold any action of these kinds, by number. */
  def rowGroupsWith(actions: Set[String]): Seq[Int] =
    rowGroups.indices.filter { i =>
      rowGroups(i).getColumns.asScala.exists { column =>
        actions(column.getPath.iterator.next()) && !nullColumns(i)(column.getPath.toArray.toSeq)
      }
    }

  /** Whether any row group has a value in this column. */
  def hasValues(column: String*): Boolean =
    rowGroups.indices.exists { i =>
      rowGroups(i).getColumns.asScala.exists(_.getPath.toArray.startsWith(column)) &&
      !leavesBelow(column).forall(nullColumns(i))
    }

  /**
   * Visits each row of a row group.
   *
   * @param wanted actions, each with the fields that are read of it; all of them if it is [[Every]]
   * @param prepare gets the cells that every row is read into, and returns what to do after each
   */
  def read(
      rowGroup: Int,
      wanted: Map[String, Set[String]]
  )(prepare: StructCell => () => Unit): Unit = {
    val projection = project(wanted, nullColumns(rowGroup))
    if (projection.getFieldCount > 0) {
      val reader = ParquetFileReader.open(input, footer, options, input.newStream())
      try {
        reader.setRequestedSchema(projection)
        val pages = reader.readRowGroup(rowGroup)
        val record = new StructCell(projection)
        val materializer = new RecordMaterializer[StructCell] {
          override def getCurrentRecord: StructCell = record
          override def getRootConverter: GroupConverter = record
        }
        val records = new ColumnIOFactory(footer.getFileMetaData.getCreatedBy)
          .getColumnIO(projection, schema, true)
          .getRecordReader(pages, materializer)
        val visit = prepare(record)
        var left = pages.getRowCount
        while (left > 0) {
          records.read()
          visit()
          left -= 1
        }
      } finally reader.close()
    }
  }

  private def schema: MessageType = footer.getFileMetaData.getSchema

  private def leavesBelow(column: Seq[String]): Seq[Seq[String]] =
    schema.getColumns.asScala.toSeq.collect {
      case c: ColumnDescriptor if c.getPath.startsWith(column) => c.getPath.toSeq
    }

  /** The leaf columns in which a row group has nothing but nulls, as far as its statistics tell. */
  private lazy val nullColumns: Vector[Set[Seq[String]]] = rowGroups.map(allNull)

  /**
   * The actions that have any value, without what is null in every row: reading that would cost more than all the rest.
   * Lists are kept, for an empty one is not null.
   */
  private def project(
      wanted: Map[String, Set[String]],
      nulls: Set[Seq[String]]
  ): MessageType = {
    val actions = schema.getFields.asScala.toSeq.collect[Type] {
      case action: GroupType if wanted.contains(action.getName) && !isCollection(action) =>
        val names = wanted(action.getName)
        val isNull = leavesBelow(Seq(action.getName)).forall(nulls)
        val fields = action.getFields.asScala.toSeq.filter { field =>
          ((names eq Every) || names(field.getName)) &&
          (isList(field) || !leavesBelow(Seq(action.getName, field.getName)).forall(nulls))
        }
        action.withNewFields((if (isNull) Nil else fields).asJava)
    }
    new MessageType(schema.getName, actions.filter(_.asGroupType.getFieldCount > 0).asJava)
  }
}

private[replay] object CheckpointFile {

  /** Stands for all fields of an action. Known by reference. */
  val Every: Set[String] = Set("*")

  private def allNull(rowGroup: BlockMetaData): Set[Seq[String]] =
    rowGroup.getColumns.asScala.iterator
      .filter { column =>
        column.getStatistics != null && column.getStatistics.isNumNullsSet &&
        column.getStatistics.getNumNulls == column.getValueCount
      }
      .map(_.getPath.toArray.toSeq)
      .toSet

  private def isCollection(group: GroupType): Boolean = isList(group) || isMap(group)

  private def isList(field: Type): Boolean =
    field.getLogicalTypeAnnotation.isInstanceOf[LogicalTypeAnnotation.ListLogicalTypeAnnotation]

  private def isMap(field: Type): Boolean =
    field.getLogicalTypeAnnotation.isInstanceOf[LogicalTypeAnnotation.MapLogicalTypeAnnotation]
}
