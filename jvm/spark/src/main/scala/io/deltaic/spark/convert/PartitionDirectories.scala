package io.deltaic.spark.convert

import java.time.ZoneId

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFolderInternals
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import io.deltaic.protocol.ColumnNames.folded
import io.deltaic.spark.schema.PartitionValues

/**
 * The values of a directory's partition columns, as the names of directories spell them; null for a null value.
 *
 * @param values by the names of the columns, in the order of the directories
 */
private[convert] final case class DirectoryValues(values: Seq[(String, String)]) {
  def columns: Seq[String] = values.map(_._1)

  /** The value of a column, whose name is folded. */
  val byName: Map[String, String] = values.map { case (name, value) => folded(name) -> value }.toMap
}

private[convert] object DirectoryValues {

  /**
   * Those of a directory below a folder: each directory whose name contains an equals sign is that of a column.
   *
   * @param directory qualified
   */
  def of(root: Path, directory: String): DirectoryValues = DirectoryValues(
    directory.stripPrefix(root.toString.stripSuffix("/")).split('/').toSeq.flatMap { name =>
      val equals = name.indexOf('=')
      Option.when(equals > 0) {
        val column = ExternalCatalogUtils.unescapePathName(name.substring(0, equals))
        column -> value(name.substring(equals + 1))
      }
    }
  )

  /** Those that the catalog has of a partition, whose values are not escaped. */
  def ofCatalog(spec: Map[String, String]): DirectoryValues =
    DirectoryValues(spec.toSeq.map { case (column, value) =>
      column -> (if (isNull(value)) null else value)
    })

  private def value(escaped: String): String =
    if (isNull(escaped)) null else ExternalCatalogUtils.unescapePathName(escaped)

  private def isNull(value: String): Boolean =
    value == null || value.isEmpty || value == ExternalCatalogUtils.DEFAULT_PARTITION_NAME
}

/**
 * The partition columns of a folder and the values of its directories.
 *
 * @param directories the values of each directory
 * @param fileIn a file in a directory, for errors
 * @param castFailsToNull whether a value that cannot be cast is null instead of an error
 */
private[convert] final class PartitionDirectories(
    root: Path,
    directories: Map[String, DirectoryValues],
    fileIn: String => String,
    conf: SQLConf,
    castFailsToNull: Boolean
) {
  private val zone = ZoneId.of(conf.sessionLocalTimeZone)

  /** The columns that the names of the directories have, which must be the same everywhere. */
  def inferred: StructType = {
    val sorted = directories.keys.toSeq.sorted
    val columns = sorted.headOption.fold(Seq.empty[String])(directories(_).columns)
    val wanted = columns.map(folded)
    sorted.find(directories(_).columns.map(folded) != wanted).foreach { other =>
      throw mismatch(other, columns)
    }
    if (wanted.distinct.size != wanted.size) throw mismatch(sorted.head, columns.distinct)
    StructType(columns.map(name => StructField(name, inferredType(name))))
  }

  private def inferredType(column: String): DataType = {
    val values = directories.values.map(_.byName(folded(column))).toSeq.distinct.map {
      case null => ExternalCatalogUtils.DEFAULT_PARTITION_NAME
      case value => ExternalCatalogUtils.escapePathName(value)
    }
    ParquetFolderInternals.inferredType(column, values, conf) match {
      // Delta tables have no such type.
      case found if PartitionDirectories.isStorable(found) => found
      case _ => StringType
    }
  }

  /** The values of each directory as the log spells them. */
  def inLog(columns: StructType): Map[String, Map[String, String]] = {
    val wanted = columns.fieldNames.map(folded).toSet
    val known = mutable.HashMap.empty[(String, String), String]
    directories.map { case (directory, found) =>
      if (found.byName.keySet != wanted || found.values.size != wanted.size)
        throw mismatch(directory, columns.fieldNames.toSeq)
      directory -> columns.map { column =>
        val value = found.byName(folded(column.name))
        column.name -> known.getOrElseUpdate(
          (column.name, value),
          spelled(column, value, directory)
        )
      }.toMap
    }
  }

  private def spelled(column: StructField, value: String, directory: String): String = {
    val dataType = PartitionDirectories.castType(column.dataType)
    def invalid = ConversionError.value(
      root,
      fileIn(directory),
      column.name,
      String.valueOf(value),
      if (column.nullable) dataType.sql else s"${dataType.sql} NOT NULL"
    )
    val cast =
      if (value == null || !PartitionDirectories.isWhole(dataType, value)) null
      else
        try Cast(Literal(value), dataType, Some(zone.getId), EvalMode.LEGACY).eval()
        catch { case NonFatal(_) => null }
    if (cast == null && value != null && !castFailsToNull) throw invalid
    val inLog = PartitionValues.toLog(column.name, dataType, cast)
    if (inLog == null && !column.nullable) throw invalid
    inLog
  }

  private def mismatch(directory: String, expected: Seq[String]) =
    ConversionError.directories(
      root,
      fileIn(directory),
      directories(directory).columns,
      expected
    )
}

private object PartitionDirectories {

  private def castType(dataType: DataType): DataType = dataType match {
    case _: CharType | _: VarcharType => StringType
    case other => other
  }

  /** Spark casts `1.5` to 1, which is another value. */
  private def isWhole(dataType: DataType, value: String): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => value.trim.matches("[+-]?[0-9]+")
    case _ => true
  }

  private def isStorable(dataType: DataType): Boolean = dataType match {
    case _: NumericType | _: StringType | BooleanType | DateType | TimestampType |
        TimestampNTZType => true
    case _ => false
  }
}
