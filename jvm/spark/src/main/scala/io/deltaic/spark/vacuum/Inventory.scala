package io.deltaic.spark.vacuum

import java.io.FileNotFoundException

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.sql.types.{BooleanType, LongType, StringType, StructType}

import io.deltaic.log.Progress
import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.util.{Cancellation, FileSystemThreads}

/**
 * Finds unused files among those of an inventory, such as a report of an object store, instead of listing the
 * directory. An inventory of paths alone, such as the result of a DRY RUN, is completed from the file system.
 *
 * @param query the query that returns the inventory
 */
private[vacuum] final class Inventory(
    spark: SparkSession,
    query: String,
    rule: UnusedRule,
    cancellation: Cancellation
) {
  import Inventory._

  private val table = rule.paths.table
  private val files = table.getFileSystem(WriteInternals.hadoopConf(spark, Map.empty))

  def findIn(unused: UnusedFiles): Unit = {
    val df = spark.sql(query)
    val columns = required(df.schema)
    val directories = mutable.HashMap.empty[String, Long]
    val kept = mutable.HashSet("")
    val phase = JobInternals.name("VACUUM", "read the inventory", table.toString)
    val rows = df.select(columns.map(df.col): _*).toLocalIterator().asScala
    val threads = if (columns.size > 1) 1 else FileSystemThreads.count(table)
    Progress.of(phase, None, "paths") { progress =>
      FileSystemThreads.foreach(rows, threads) { row =>
        cancellation.check()
        for (path <- relative(row.getString(0)); entry <- entryOf(path, row))
          rule.of(path, entry) match {
            case Found.Unused if !rule.hidden.inPath(path) => unused.add(path, entry.sizeBytes)
            case Found.Directory =>
              directories.synchronized(directories(path) = entry.modificationTimeMs)
            case Found.Checksum => ()
            case _ => kept.synchronized(kept ++= ancestors(path))
          }
        progress.add(1)
      }
    }
    val found = directories.filterNot { case (path, _) => rule.hidden.inPath(path) }
    val below = found.keysIterator.toSeq.groupMapReduce(parent)(_ => 1)(_ + _)
    found.foreach { case (path, modificationTimeMs) =>
      val numDirectories = below.getOrElse(path, 0)
      unused.addDirectory(ListedDirectory(path, modificationTimeMs, kept(path), numDirectories))
    }
  }

  private def relative(path: String): Option[String] =
    if (path == null) None
    else {
      val file = new Path(path)
      rule.paths.ofPath(if (file.isAbsolute) file else new Path(table, file))
    }

  private def entryOf(path: String, row: Row): Option[DirectoryEntry] =
    if (row.length > 1) Some(new InventoryEntry(path, row))
    else
      try Some(new StatusEntry(path, files.getFileStatus(rule.paths.absolute(path))))
      catch { case _: FileNotFoundException => None }

  private def required(schema: StructType): Seq[String] = {
    def has(names: Seq[String]) = names.forall { name =>
      schema.fields.exists(f =>
        f.name.equalsIgnoreCase(name) && f.dataType == Columns(name).dataType
      )
    }
    if (has(Columns.fieldNames.toSeq)) Columns.fieldNames.toSeq
    else if (schema.length == 1 && has(Seq(PathColumn))) Seq(PathColumn)
    else
      throw DeltaicException(
        "DELTAIC_VACUUM_INVENTORY_INVALID",
        Map("table" -> table.toString, "columns" -> schema.toDDL, "required" -> Columns.toDDL)
      )
  }
}

private object Inventory {
  private val PathColumn = "path"

  private val Columns = new StructType()
    .add(PathColumn, StringType)
    .add("length", LongType)
    .add("isDir", BooleanType)
    .add("modificationTime", LongType)

  private def parent(path: String): String = path.substring(0, math.max(0, path.lastIndexOf('/')))

  private def ancestors(path: String): Seq[String] =
    Iterator.iterate(parent(path))(parent).takeWhile(_.nonEmpty).toSeq

  /** A row with all columns. A null is treated as what keeps the file. */
  private final class InventoryEntry(override val path: String, row: Row) extends DirectoryEntry {
    override def isDirectory: Boolean = !row.isNullAt(2) && row.getBoolean(2)
    override def isFile: Boolean = !row.isNullAt(2) && !row.getBoolean(2)
    override def sizeBytes: Long = if (row.isNullAt(1)) 0L else row.getLong(1)
    override def modificationTimeMs: Long = if (row.isNullAt(3)) Long.MaxValue else row.getLong(3)
  }
}
