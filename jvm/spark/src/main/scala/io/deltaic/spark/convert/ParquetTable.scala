package io.deltaic.spark.convert

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTablePartition}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{StreamSinkInternals, WriteInternals}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFolderInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.ColumnNames.folded
import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.schema.ColumnKeys
import io.deltaic.spark.util.SessionSettings

/**
 * Parquet files to be read as a table.
 *
 * @param root their folder, qualified
 * @param entry the table in the session catalog, if there is one
 * @param partitioning the partition columns, if they are stated
 * @param statistics the properties of the Delta table, by which statistics are read; none for no statistics
 */
private[spark] final case class ParquetSource(
    root: Path,
    entry: Option[CatalogTable],
    partitioning: Option[StructType],
    statistics: Option[Map[String, String]]
)

/**
 * Parquet files as a Delta table has them: its columns and files. Nothing is written.
 *
 * @param schema all columns; nullable, except stated partition columns
 * @param isPartitioningInferred whether the partition columns are those of the names of directories
 */
private[spark] final class ParquetTable private[convert] (
    val root: Path,
    val schema: StructType,
    val partitioning: StructType,
    val isPartitioningInferred: Boolean,
    footers: Footers,
    valuesOf: Map[String, Map[String, String]],
    expected: Option[ExpectedStatistics]
) {

  def numFiles: Int = footers.files.size

  def sizeBytes: Long = footers.files.iterator.map(_.file.sizeBytes).sum

  /** A file outside of the folder, which is where a partition in the catalog may be. */
  def fileOutside: Option[String] = {
    val prefix = root.toString.stripSuffix("/") + "/"
    footers.files.iterator.map(_.file.path).find(!_.startsWith(prefix))
  }

  /**
   * The files. Paths are relative to the folder.
   *
   * @param properties of the table, which select the columns of which it has statistics
   */
  def adds(properties: Map[String, String]): Vector[AddFile] = {
    val data = StructType(schema.filterNot(f => partitioning.fieldNames.contains(f.name)))
    val wanted = ConvertedStatistics.columnsOf(data, properties)
    val adapt = footers.schemas.map { columns =>
      expected.map(own => ConvertedStatistics.adaptation(columns, own.of(columns), wanted))
    }
    footers.files.map { case FooterOfFile(file, schema, statistics) =>
      AddFile(
        path = LogPath.relativize(root, new Path(file.path)),
        partitionValues = valuesOf(file.directory),
        sizeBytes = file.sizeBytes,
        modificationTimeMs = file.modificationTimeMs,
        dataChange = true,
        stats = for (own <- statistics; toTable <- adapt(schema)) yield toTable(own)
      )
    }
  }
}

private[spark] object ParquetTable {

  /** Lists the files and reads their footers. */
  def read(spark: SparkSession, source: ParquetSource): ParquetTable =
    new ParquetTableReader(spark, source).read()
}

/** Reads a [[ParquetTable]]. */
private[convert] final class ParquetTableReader(spark: SparkSession, source: ParquetSource) {
  import ParquetTableReader._

  private val root = source.root
  private val sqlConf = spark.sessionState.conf
  private val conf: Configuration =
    ParquetFolderInternals.configure(WriteInternals.hadoopConf(spark, Map.empty), sqlConf)
  private val listing = new FolderListing(root, conf)

  /** The columns that the catalog declares, if they are to be used. */
  private val declared: Option[StructType] =
    source.entry.filter(_ => SessionSettings.isOn(spark, UseCatalogSchema, default = true))
      .map(_.schema)

  source.entry.foreach { entry =>
    source.partitioning.foreach(MatchingPartitioning.require(entry, _))
  }

  /** The directories of the partitions in the catalog, if it has these. */
  private lazy val catalogPartitions: Option[Map[String, DirectoryValues]] =
    source.entry.filter { entry =>
      entry.partitionColumnNames.nonEmpty && entry.tracksPartitionsInCatalog && usesCatalog
    }.map { entry =>
      spark.sessionState.catalog.listPartitions(entry.identifier).map { partition =>
        directoryOf(entry, partition) -> DirectoryValues.ofCatalog(partition.spec)
      }.toMap
    }

  private def usesCatalog: Boolean =
    SessionSettings.isOn(spark, UseCatalogPartitions, default = true)

  private def directoryOf(entry: CatalogTable, partition: CatalogTablePartition): String = {
    val location = partition.storage.locationUri.map(new Path(_)).getOrElse(
      new Path(
        root,
        partition.spec.toSeq.sortBy { case (column, _) =>
          entry.partitionColumnNames.indexOf(column)
        }.map { case (column, value) => s"$column=$value" }.mkString("/")
      )
    )
    location.getFileSystem(conf).makeQualified(location).toString
  }

  def read(): ParquetTable = {
    val (entries, first) =
      try {
        val all = found.sortBy(_.path).toVector
        (all, listing.expanded(all.iterator).nextOption())
      } catch { case e: InvalidFile => throw ConversionError.file(root, e.file, e.getMessage) }
    if (first.isEmpty) throw ConversionError.noFiles(root)
    val expected = source.statistics.map { properties =>
      ExpectedStatistics(Some(dataOf(declared.getOrElse(schemaOf(first.get)))), properties)
    }
    tableOf(new FooterReader(spark, root, conf, expected).read(entries), expected)
  }

  /** The files, or directories with many of them. */
  private def found: Seq[FolderEntry] = {
    val listed =
      if (SessionSettings.isOn(spark, UseMetadataLog, default = true))
        StreamSinkInternals.files(spark, root, conf).map(_.map(FolderEntry.of))
      else None
    listed.getOrElse(catalogPartitions match {
      case Some(partitions) => listing.filesIn(partitions.keys.toSeq.sorted.map(new Path(_)))
      case None if source.entry.exists(_.partitionColumnNames.isEmpty) =>
        listing.filesIn(Seq(root))
      case None => listing.below(maxDirectories)
    })
  }

  private def maxDirectories: Long = SessionSettings.wholeNumber(
    spark,
    "convert.distributed.minDirectories",
    if (spark.sparkContext.isLocal) Long.MaxValue else DefaultMinDirectories
  ).max(2L)

  private def schemaOf(file: FolderEntry): StructType =
    new FooterReader(spark, root, conf, None).read(Vector(file)).schemas.head

  /** The columns without the partition columns, as far as these are known. */
  private def dataOf(columns: StructType): StructType = {
    val known = source.partitioning.orElse(source.entry.map(_.partitionSchema))
    StructType(columns.filter(c => known.forall(MergedSchema.find(_, c.name).isEmpty)))
  }

  private def tableOf(footers: Footers, expected: Option[ExpectedStatistics]): ParquetTable = {
    val fileIn = footers.files.reverseIterator.map(f => f.file.directory -> f.file.path).toMap
    val directories = new PartitionDirectories(
      root,
      fileIn.keys.map { directory =>
        val ofCatalog = catalogPartitions.flatMap(_.get(directory))
        directory -> ofCatalog.getOrElse(DirectoryValues.of(root, directory))
      }.toMap,
      fileIn,
      sqlConf,
      SessionSettings.isOn(spark, IgnoreCastFailure)
    )
    val stated = source.entry.map(_.partitionSchema).orElse(source.partitioning)
    val partitioning = stated.getOrElse(directories.inferred)
    val files = footers.schemasOfFiles.map { file =>
      val columns = file.columns.map(c => MergedSchema.find(partitioning, c.name).getOrElse(c))
      file.copy(columns = StructType(columns))
    }
    declared.foreach(MatchingPartitioning.requireNoDefaults(root, _, files))
    val merged = new MergedSchema(root, files)
    val schema = declared.map(merged.ofCatalog).getOrElse {
      val ofFiles = merged.ofFiles
      StructType(ofFiles ++ partitioning.filter(c => MergedSchema.find(ofFiles, c.name).isEmpty))
    }
    new ParquetTable(
      root,
      schema,
      partitioning,
      stated.isEmpty && partitioning.nonEmpty,
      footers,
      directories.inLog(partitioning),
      expected
    )
  }
}

private[convert] object ParquetTableReader {

  /** Below that, the driver lists directories as fast as tasks. */
  private val DefaultMinDirectories = 5000L
  private val UseMetadataLog = "convert.useMetadataLog"
  private val UseCatalogPartitions = "convert.useCatalogPartitions"
  private val UseCatalogSchema = "convert.useCatalogSchema"
  private val IgnoreCastFailure = "convert.partitionValues.ignoreCastFailure"
}

private[convert] object MatchingPartitioning {

  /** The catalog knows the partition columns: others cannot be stated. */
  def require(entry: CatalogTable, stated: StructType): Unit = {
    def columns(of: StructType) = of.map(c => (folded(c.name), c.dataType))
    if (columns(stated) != columns(entry.partitionSchema))
      throw ConversionError.partitioning(
        entry.identifier.quotedString,
        stated.toDDL,
        entry.partitionSchema.toDDL
      )
  }

  /** Spark reads the default of a column that was added later from files without the column; Delta tables read null. */
  def requireNoDefaults(root: Path, declared: StructType, files: Seq[SchemaOfFile]): Unit =
    for {
      column <- declared if column.metadata.contains(ColumnKeys.ExistsDefault)
      file <- files.find(f => MergedSchema.find(f.columns, column.name).isEmpty)
    } throw ConversionError.file(
      root,
      file.file,
      s"it does not have the column ${column.name}, which has a default value"
    )
}
