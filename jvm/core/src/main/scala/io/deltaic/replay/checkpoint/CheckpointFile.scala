package io.deltaic.replay.checkpoint

import java.io.EOFException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.filter2.compat.FilterCompat
import org.apache.parquet.filter2.predicate.{FilterApi, FilterPredicate}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.io.api.{Binary, GroupConverter, RecordMaterializer}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, MessageType, Type}
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}

/**
 * A Parquet file of actions, each row of which has one struct that is not null (Protocol § Checkpoint Schema). Missing
 * columns are treated as null, and unknown ones are not read. Its row groups can be read in parallel.
 */
private[replay] final class CheckpointFile(val status: FileStatus, conf: Configuration) {
  import CheckpointFile._

  private val input = HadoopInputFile.fromStatus(status, conf)

  private val footer: ParquetMetadata = {
    val stream = input.newStream()
    try ParquetFileReader.readFooter(input, HadoopReadOptions.builder(conf).build(), stream)
    finally stream.close()
  }

  private val rowGroups = footer.getBlocks.asScala.toVector

  // A footer has no checksum, and its sizes would be allocated before anything is read.
  rowGroups.iterator.flatMap(_.getColumns.asScala).foreach { column =>
    val end = column.getStartingPos + column.getTotalSize
    if (column.getStartingPos < 0 || column.getTotalSize < 0 || end > status.getLen || end < 0)
      throw new EOFException(s"column ${column.getPath} would end at $end of ${status.getLen}")
  }

  /** The indexes of the row groups that have any action of these kinds. */
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
   * @param wanted the actions to read, each with the fields to read, or [[Every]] for all fields
   * @param anyOf if not empty, rows in which all these columns are null may be skipped; pages of such rows are
   * @param prepare receives the cells that every row is read into, and returns the function to call for each row
   */
  def read(
      rowGroup: Int,
      wanted: Map[String, Set[String]],
      anyOf: Seq[Seq[String]] = Nil
  )(prepare: StructCell => () => Unit): Unit = {
    val projection = project(wanted, nullColumns(rowGroup))
    if (projection.getFieldCount > 0) {
      val chosen = optionsFor(anyOf)
      val reader = ParquetFileReader.open(input, footer, chosen, input.newStream())
      try {
        reader.setRequestedSchema(projection)
        val pages = reader.readFilteredRowGroup(rowGroup)
        if (pages != null) visitAll(pages, projection, prepare)
      } finally reader.close()
    }
  }

  private def visitAll(
      pages: PageReadStore,
      projection: MessageType,
      prepare: StructCell => () => Unit
  ): Unit = {
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
  }

  /** Only Parquet's column index filter is used: it skips pages, never single rows. */
  private def optionsFor(anyOf: Seq[Seq[String]]): ParquetReadOptions = {
    // New options for each reader: they contain its decompressors, which it releases when it is closed.
    val columns = anyOf.filter(c => schema.containsPath(c.toArray))
    val filters = columns.map(notNull)
    // Without page checksums, damage that can be decoded would change the table undetected.
    val builder = HadoopReadOptions.builder(conf, status.getPath).usePageChecksumVerification()
    if (filters.isEmpty || filters.contains(None)) builder.build()
    else {
      builder
        .useStatsFilter(false)
        .useDictionaryFilter(false)
        .useBloomFilter(false)
        .useRecordFilter(false)
        .useColumnIndexFilter(true)
        .withRecordFilter(FilterCompat.get(filters.flatten.reduce(FilterApi.or(_, _))))
        .build()
    }
  }

  /** None for a type that these columns do not have. */
  private def notNull(column: Seq[String]): Option[FilterPredicate] = {
    val path = column.mkString(".")
    schema.getType(column: _*).asPrimitiveType.getPrimitiveTypeName match {
      case PrimitiveTypeName.BINARY =>
        Some(FilterApi.notEq(FilterApi.binaryColumn(path), null: Binary))
      case PrimitiveTypeName.INT32 =>
        Some(FilterApi.notEq(FilterApi.intColumn(path), null: Integer))
      case PrimitiveTypeName.INT64 =>
        Some(FilterApi.notEq(FilterApi.longColumn(path), null: java.lang.Long))
      case _ => None
    }
  }

  private def schema: MessageType = footer.getFileMetaData.getSchema

  private def leavesBelow(column: Seq[String]): Seq[Seq[String]] =
    schema.getColumns.asScala.toSeq.collect {
      case c: ColumnDescriptor if c.getPath.startsWith(column) => c.getPath.toSeq
    }

  /** The leaf columns of each row group with only nulls, according to its statistics. */
  private lazy val nullColumns: Vector[Set[Seq[String]]] = rowGroups.map(allNull)

  /**
   * The actions that have any value, without the fields that are null in every row: reading these would cost more than
   * all other fields. Lists are always read, because an empty list is not null.
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

  /** Stands for all fields of an action. Compared by reference. */
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
