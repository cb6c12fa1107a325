package io.deltaic.spark.convert

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.ParquetReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{FileMetaData, ParquetMetadata}
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.JobInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.util.{FileSystemTasks, FileSystemThreads, ParquetFiles}
import io.deltaic.spark.write.files.FileStatistics

/**
 * A file with what its footer says.
 *
 * @param schema the number of its schema in a list of distinct ones
 * @param statistics of its own columns, under its own types; none if they are not wanted
 */
private[convert] final case class FooterOfFile(
    file: FolderEntry,
    schema: Int,
    statistics: Option[String]
)

/** Files with the distinct schemas that they have. */
private[convert] final case class Footers(
    schemas: Vector[StructType],
    files: Vector[FooterOfFile]
) {

  /** A file with each of the schemas. */
  def schemasOfFiles: Seq[SchemaOfFile] = {
    val first = files.reverseIterator.map(file => file.schema -> file.file.path).toMap
    schemas.zipWithIndex.collect {
      case (columns, i) if first.contains(i) =>
        SchemaOfFile(columns, first(i))
    }
  }
}

private[convert] object Footers {

  /** The files of all parts by their paths, and the schemas in the order in which files have them. */
  def joined(parts: Seq[Footers]): Footers = {
    val numbers = mutable.LinkedHashMap.empty[StructType, Int]
    val files = parts.flatMap(part => part.files.map(part.schemas -> _))
      .sortBy(_._2.file.path)
      .map { case (schemas, file) =>
        file.copy(schema = numbers.getOrElseUpdate(schemas(file.schema), numbers.size))
      }
    Footers(numbers.keys.toVector, files.toVector)
  }
}

/** What a task returns: the footers of its files, or the first file that has none. */
private[convert] final case class FooterBatch(footers: Footers, problem: Option[FileProblem])

private[convert] final case class FileProblem(file: String, reason: String)

/**
 * Reads the footers of files in one pass, in executors if there are many.
 *
 * @param expected the columns that have statistics, as far as they are known before the files are read; none if no
 *   statistics are wanted
 */
private[convert] final class FooterReader(
    spark: SparkSession,
    root: Path,
    conf: Configuration,
    expected: Option[ExpectedStatistics]
) {

  /** @param entries files, and directories whose files are not listed yet */
  def read(entries: IndexedSeq[FolderEntry]): Footers = {
    val (folder, wanted) = (root.toString, expected)
    val batches = FileSystemTasks(
      spark,
      JobInternals.name("CONVERT", "read footers", folder),
      root,
      conf,
      entries,
      (entry: FolderEntry) => if (entry.isDirectory) FooterReader.FilesOfDirectory else 1
    )((conf, some, threads) => FooterReader.batch(folder, conf, some, threads, wanted))
    batches.flatMap(_.problem).minByOption(_.file).foreach { problem =>
      throw ConversionError.file(root, problem.file, problem.reason)
    }
    Footers.joined(batches.map(_.footers))
  }
}

private[convert] object FooterReader {

  /** How many files a directory may have that is listed by a task. */
  private val FilesOfDirectory = 100

  /** Runs in tasks: nothing of the driver is used. */
  private def batch(
      folder: String,
      conf: Configuration,
      entries: Iterator[FolderEntry],
      threads: Int,
      expected: Option[ExpectedStatistics]
  ): FooterBatch = {
    val schemas = new DistinctSchemas
    val options = ParquetFiles.options(conf)
    val found = mutable.ArrayBuffer.empty[FooterOfFile]
    val problems = mutable.ArrayBuffer.empty[FileProblem]
    def read(file: FolderEntry): Unit =
      try {
        val footer = one(file, conf, options, schemas, expected)
        found.synchronized(found += footer)
        ()
      } catch {
        case NonFatal(e) =>
          problems.synchronized(problems += FileProblem(file.path, reasonOf(e)))
          throw e
      }
    val files = new FolderListing(new Path(folder), conf).expanded(entries)
    try FileSystemThreads.foreach(files, threads)(read)
    catch {
      case invalid: InvalidFile if problems.isEmpty =>
        problems += FileProblem(invalid.file, invalid.getMessage)
      case NonFatal(_) if problems.nonEmpty => ()
    }
    FooterBatch(Footers(schemas.all, found.toVector), problems.minByOption(_.file))
  }

  private def one(
      file: FolderEntry,
      conf: Configuration,
      options: ParquetReadOptions,
      schemas: DistinctSchemas,
      expected: Option[ExpectedStatistics]
  ): FooterOfFile = {
    // The status is known from the listing, which saves a request.
    val input = ParquetFiles.input(file.status, conf)
    val footer = Using.resource(ParquetFileReader.open(input, options))(_.getFooter)
    val (number, columns) = schemas.numberOf(file.path, footer, conf)
    val statistics = expected.map { wanted =>
      val values = ForeignValues.of(footer.getFileMetaData)
      FileStatistics.json(footer, wanted.of(columns), values)
    }
    FooterOfFile(file, number, statistics)
  }

  private def reasonOf(e: Throwable): String = e match {
    case known: InvalidFile => known.getMessage
    case other =>
      s"it cannot be read as a Parquet file (${Option(other.getMessage).getOrElse(other.toString)})"
  }
}

/** The distinct schemas of some files. The same types are converted once. */
private[convert] final class DistinctSchemas {
  private val numbers = mutable.HashMap.empty[(MessageType, Map[String, String]), Int]
  private val schemas = mutable.ArrayBuffer.empty[StructType]

  def all: Vector[StructType] = synchronized(schemas.toVector)

  def numberOf(path: String, footer: ParquetMetadata, conf: Configuration): (Int, StructType) =
    synchronized {
      val file = footer.getFileMetaData
      val key = (file.getSchema, file.getKeyValueMetaData.asScala.toMap)
      val number = numbers.getOrElseUpdate(key, numberOf(columnsOf(path, file, conf)))
      (number, schemas(number))
    }

  private def columnsOf(path: String, file: FileMetaData, conf: Configuration): StructType = {
    val columns =
      try FileSchema.of(file, conf)
      catch {
        case NonFatal(e) =>
          throw new InvalidFile(path, s"Spark cannot read its columns (${e.getMessage})")
      }
    FileSchema.duplicates(columns).foreach { names =>
      val listed = names.mkString(", ")
      throw new InvalidFile(path, s"it has columns whose names differ only in case: $listed")
    }
    columns
  }

  private def numberOf(columns: StructType): Int = {
    val known = schemas.indexOf(columns)
    if (known < 0) schemas += columns
    if (known < 0) schemas.size - 1 else known
  }
}
