package io.deltaic.replay

import scala.collection.immutable.HashMap
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.io.api.{GroupConverter, RecordMaterializer}
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, MessageType, Type}

import io.deltaic.log.{Checkpoint, LogThreads}
import io.deltaic.protocol._

/**
 * Reads the Parquet files of a V1 checkpoint (Protocol § Checkpoints), without Spark. Columns that are missing count as
 * null, unknown ones are not read.
 */
private[replay] final class CheckpointReader(table: Path, conf: Configuration) {
  import CheckpointReader._

  /** Everything but the files, so that a table this build cannot read is refused before its files are looked at. */
  def readHeader(checkpoint: Checkpoint): TableState = {
    val headers = LogThreads
      .mapInOrder(checkpoint.files.iterator)(file => guarded(checkpoint, file)(headerOf(file)))
      .flatten
      .toVector
    headers.foldLeft(TableState.empty(table)) {
      case (state, p: Protocol) => state.copy(protocol = Some(p))
      case (state, m: Metadata) => state.copy(metadata = Some(m))
      case (state, t: SetTransaction) =>
        state.copy(transactions = state.transactions.updated(t.appId, t))
      case (state, d: DomainMetadata) if !d.removed =>
        state.copy(domains = state.domains.updated(d.domain, d))
      case (state, _) => state
    }
  }

  /** The header with the checkpoint's files and tombstones. Each file becomes one block. */
  def readFiles(checkpoint: Checkpoint, header: TableState): TableState = {
    val parts = LogThreads
      .mapInOrder(checkpoint.files.iterator)(file => guarded(checkpoint, file)(filesOf(file)))
      .toVector
    header.copy(
      files = FileTable.of(table, parts.map(_._1)),
      tombstones = HashMap.from(parts.iterator.flatMap(_._2))
    )
  }

  private def headerOf(file: FileStatus): Seq[Action] = {
    val actions = Vector.newBuilder[Action]
    scan(file, _ => headerColumns) { record =>
      record.struct("protocol").filter(_.isDefined).foreach(c =>
        actions += CheckpointRow.protocol(c)
      )
      record.struct("metaData").filter(_.isDefined).foreach(c =>
        actions += CheckpointRow.metadata(c)
      )
      record.struct("txn").filter(_.isDefined).foreach(c => actions += CheckpointRow.txn(c))
      record
        .struct("domainMetadata")
        .filter(_.isDefined)
        .foreach(c => actions += CheckpointRow.domain(c))
    }
    actions.result()
  }

  private def filesOf(file: FileStatus): (FileBlock, Seq[(String, RemoveFile)]) = {
    val block = new FileBlockBuilder(table)
    val removes = Vector.newBuilder[(String, RemoveFile)]
    scan(file, fileColumns) { record =>
      record.struct("add").filter(_.isDefined).foreach(c => block.append(CheckpointRow.add(c)))
      record.struct("remove").filter(_.isDefined).foreach { c =>
        val remove = CheckpointRow.remove(c)
        removes += FileKey.of(table, remove.path, remove.dvId) -> remove
      }
    }
    (block.result(), removes.result())
  }

  private def scan(file: FileStatus, wanted: ParquetMetadata => Map[String, Set[String]])(
      visit: StructCell => Unit
  ): Unit = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))
    try {
      val fileSchema = reader.getFileMetaData.getSchema
      val projection = project(fileSchema, wanted(reader.getFooter))
      if (projection.getFieldCount > 0) {
        reader.setRequestedSchema(projection)
        val columns = new ColumnIOFactory(reader.getFileMetaData.getCreatedBy)
          .getColumnIO(projection, fileSchema, true)
        val record = new StructCell(projection)
        val materializer = new RecordMaterializer[StructCell] {
          override def getCurrentRecord: StructCell = record
          override def getRootConverter: GroupConverter = record
        }
        var rowGroup = reader.readNextRowGroup()
        while (rowGroup != null) {
          val records = columns.getRecordReader(rowGroup, materializer)
          var left = rowGroup.getRowCount
          while (left > 0) {
            visit(records.read())
            left -= 1
          }
          rowGroup = reader.readNextRowGroup()
        }
      }
    } finally reader.close()
  }

  private def guarded[A](checkpoint: Checkpoint, file: FileStatus)(read: => A): A =
    try read
    catch {
      case NonFatal(e) if !e.isInstanceOf[DeltaicException] =>
        throw new DeltaicException(
          "DELTAIC_CHECKPOINT_UNREADABLE",
          Map(
            "table" -> table.toString,
            "version" -> checkpoint.version.toString,
            "file" -> file.getPath.getName,
            "reason" -> Option(e.getMessage).getOrElse(e.toString)
          ),
          e
        )
    }
}

private[replay] object CheckpointReader {

  private val Every = Set("*")

  private val headerColumns: Map[String, Set[String]] =
    Seq("protocol", "metaData", "txn", "domainMetadata").map(_ -> Every).toMap

  private val removeColumns = Set(
    "path",
    "deletionTimestamp",
    "dataChange",
    "extendedFileMetadata",
    "partitionValues",
    "size",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion"
  )

  private val addColumns = Set(
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider"
  )

  /** Statistics are read in one of their two forms: as JSON, if any file has them so, else as a struct. */
  private def fileColumns(footer: ParquetMetadata): Map[String, Set[String]] = {
    val stats = if (holdsAny(footer, "add", "stats")) "stats" else "stats_parsed"
    Map("add" -> (addColumns + stats), "remove" -> removeColumns)
  }

  private def holdsAny(footer: ParquetMetadata, path: String*): Boolean =
    footer.getBlocks.asScala.exists(_.getColumns.asScala.exists { column =>
      column.getPath.toArray.sameElements(path) && !isAllNull(column)
    })

  private def isAllNull(column: ColumnChunkMetaData): Boolean =
    column.getStatistics != null && column.getStatistics.isNumNullsSet &&
    column.getStatistics.getNumNulls == column.getValueCount

  private def project(schema: MessageType, wanted: Map[String, Set[String]]): MessageType = {
    val fields = schema.getFields.asScala.collect[Type] {
      case group: GroupType if wanted.contains(group.getName) && !isCollection(group) =>
        val names = wanted(group.getName)
        group.withNewFields(
          group.getFields.asScala.filter(f => (names eq Every) || names(f.getName)).asJava
        )
    }
    new MessageType(schema.getName, fields.filter(_.asGroupType.getFieldCount > 0).asJava)
  }

  private def isCollection(group: GroupType): Boolean = group.getLogicalTypeAnnotation match {
    case _: LogicalTypeAnnotation.MapLogicalTypeAnnotation |
        _: LogicalTypeAnnotation.ListLogicalTypeAnnotation =>
      true
    case _ => false
  }
}
