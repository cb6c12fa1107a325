package io.deltaic.spark.convert

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.types._

import io.deltaic.protocol.ColumnNames.folded
import io.deltaic.spark.schema.PhysicalSchema
import io.deltaic.spark.util.Json
import io.deltaic.spark.write.files.{StatisticsColumns, StatisticsLeaf}

/**
 * Which columns of a file get statistics before all files are known: those that the table would have statistics of if it had
 * the expected columns, and the first of the others. Columns that other files add come after the expected ones, so that these are all
 * that may be needed.
 *
 * @param schema the expected columns; none if none are known
 * @param properties of the table
 */
private[convert] final case class ExpectedStatistics(
    schema: Option[StructType],
    properties: Map[String, String]
) {
  import ConvertedStatistics._

  private val known: Set[Seq[String]] = schema.toSeq.flatMap(leaves).map(foldedPath).toSet
  private val selected: Set[Seq[String]] =
    schema.toSeq.flatMap(columnsOf(_, properties).leaves).map(leaf => foldedPath(leaf.path)).toSet

  def of(file: StructType): StatisticsColumns = {
    val names = properties.contains(StatisticsColumns.NamedColumns)
    if (names || schema.isEmpty) columnsOf(file, properties)
    else {
      val (expected, others) = leaves(file).partition(path => known(foldedPath(path)))
      val first = columnsOf(file, properties).leaves.size
      val needed = expected.filter(path => selected(foldedPath(path))) ++ others.take(first)
      StatisticsColumns.select(
        file,
        properties + (StatisticsColumns.NumIndexedColumns -> "0"),
        _.name,
        needed
      )
    }
  }
}

private[convert] object ConvertedStatistics {

  /** The columns of which a table has statistics in its log. */
  def columnsOf(data: StructType, properties: Map[String, String]): StatisticsColumns =
    StatisticsColumns.select(data, properties, PhysicalSchema.nameOf(_, columnMapping = false))

  def foldedPath(path: Seq[String]): Seq[String] = path.map(folded)

  /** The columns without parts that are structs. */
  def leaves(struct: StructType): Seq[Seq[String]] = struct.flatMap { field =>
    field.dataType match {
      case inner: StructType => leaves(inner).map(field.name +: _)
      case _ => Seq(Seq(field.name))
    }
  }

  /**
   * How statistics of files with certain columns become those of a table.
   *
   * @param file the columns of the files
   * @param own the columns of which the files have statistics
   * @param table the columns of which the table has statistics
   */
  def adaptation(
      file: StructType,
      own: StatisticsColumns,
      table: StatisticsColumns
  ): String => String = {
    val leaves = table.leaves.map(leaf => leaf -> MergedSchema.typeAt(file, leaf.path))
    val isSame = leaves.forall { case (leaf, found) => found.contains(leaf.dataType) } &&
      own.leaves.map(_.path) == table.leaves.map(_.path) &&
      own.stringPrefixLength == table.stringPrefixLength
    if (isSame) identity else adapted(_, leaves)
  }

  private def adapted(
      statistics: String,
      leaves: Seq[(StatisticsLeaf, Option[DataType])]
  ): String = {
    val own = Json.parse(statistics)
    val (minValues, maxValues, nullCounts) = (Json.obj(), Json.obj(), Json.obj())
    val numRecords = own.required("numRecords")
    leaves.foreach {
      // A column that a file does not have is null in all of its rows.
      case (leaf, None) => put(nullCounts, leaf.path, numRecords)
      case (leaf, Some(inFile)) =>
        def bound(kind: String): Option[JsonNode] =
          at(own, kind, leaf.path).flatMap(widened(_, inFile, leaf.dataType))
        bound("minValues").map(withSignOfZero(_, leaf.dataType)).foreach(
          put(minValues, leaf.path, _)
        )
        bound("maxValues").foreach(put(maxValues, leaf.path, _))
        at(own, "nullCount", leaf.path).foreach(put(nullCounts, leaf.path, _))
    }
    val result = Json.obj("numRecords" -> numRecords)
    result.set[JsonNode]("minValues", minValues)
    result.set[JsonNode]("maxValues", maxValues)
    result.set[JsonNode]("nullCount", nullCounts)
    result.put("tightBounds", true)
    result.toString
  }

  /** A bound of a file as one of the wider type. */
  private def widened(value: JsonNode, inFile: DataType, dataType: DataType): Option[JsonNode] =
    (inFile, dataType) match {
      case (one, other) if one == other => Some(value)
      case (FloatType, DoubleType) => Some(Json.of(value.asText.toFloat.toDouble))
      case (DateType, TimestampNTZType) => Some(Json.of(s"${value.asText}T00:00:00.000"))
      case (TimestampNTZType, TimestampType) => Some(Json.of(s"${value.asText}Z"))
      case (_: NumericType, decimal: DecimalType) =>
        Some(Json.of(value.decimalValue.setScale(decimal.scale)))
      case (ByteType | ShortType | IntegerType | LongType, _: NumericType) => Some(value)
      case _ => None
    }

  /** The smallest value may be -0.0, which a parsed number is not. */
  private def withSignOfZero(min: JsonNode, dataType: DataType): JsonNode = dataType match {
    case FloatType | DoubleType if min.decimalValue.signum == 0 => Json.of(-0.0)
    case _ => min
  }

  private def at(statistics: ObjectNode, kind: String, path: Seq[String]): Option[JsonNode] = {
    val found = path.foldLeft(statistics.path(kind))((node, name) => node.path(name))
    Option.unless(found.isMissingNode || found.isNull)(found)
  }

  private def put(tree: ObjectNode, path: Seq[String], value: JsonNode): Unit = {
    val parent = path.init.foldLeft(tree) { (node, name) =>
      node.get(name) match {
        case child: ObjectNode => child
        case _ => node.putObject(name)
      }
    }
    parent.set[JsonNode](path.last, value)
    ()
  }
}
