package io.deltaic.spark.write.files

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import io.deltaic.protocol.{ColumnNames, DeltaicException, DeltaicThrowable, TableProperties}
import io.deltaic.spark.schema.TypeChange

/**
 * A node of the statistics' JSON, which mirrors the data schema (Protocol § Per-file Statistics).
 */
private[spark] sealed trait StatisticsNode extends Serializable {

  /** The column's name in the data file. */
  def name: String
}

private[spark] final case class StatisticsGroup(name: String, children: Seq[StatisticsNode])
    extends StatisticsNode

/**
 * A column with statistics. Arrays, maps and variants are leaves: they have a null count and no
 * bounds.
 *
 * @param ordinal the position among the leaves of one [[StatisticsColumns]]
 * @param mayHoldFloats whether it is a column of doubles and older files hold floats (Protocol § Type Widening)
 */
private[spark] final case class StatisticsLeaf(
    name: String,
    ordinal: Int,
    path: Seq[String],
    dataType: DataType,
    mayHoldFloats: Boolean
) extends StatisticsNode

/** The columns with statistics, and the length of string prefixes in them. */
private[spark] final case class StatisticsColumns(
    roots: Seq[StatisticsNode],
    stringPrefixLength: Int
) {

  val leaves: IndexedSeq[StatisticsLeaf] = {
    def flatten(node: StatisticsNode): Seq[StatisticsLeaf] = node match {
      case leaf: StatisticsLeaf => Seq(leaf)
      case StatisticsGroup(_, children) => children.flatMap(flatten)
    }
    roots.flatMap(flatten).toIndexedSeq
  }
}

private[spark] object StatisticsColumns {
  val NumIndexedColumns = "delta.dataSkippingNumIndexedCols"
  val NamedColumns = "delta.dataSkippingStatsColumns"
  val StringPrefixLength = "delta.dataSkippingStringPrefixLength"

  /**
   * The columns that the table's properties select: those named by `delta.dataSkippingStatsColumns`
   * (a struct stands for all below it), else the first `delta.dataSkippingNumIndexedCols` leaves
   * (-1: all).
   *
   * @param needed columns that have statistics regardless of the properties, by their physical names
   * @param dataSchema the columns in the data files, under their logical names
   */
  def select(
      dataSchema: StructType,
      properties: Map[String, String],
      physicalName: StructField => String,
      needed: Seq[Seq[String]] = Nil
  ): StatisticsColumns = {
    val wanted: (Seq[String], Int) => Boolean = properties.get(NamedColumns) match {
      case Some(list) =>
        val named = splitNames(list).map(parseName(_).map(ColumnNames.folded))
        (path, _) => named.exists(name => path.map(ColumnNames.folded).startsWith(name))
      case None =>
        val limit = intProperty(properties, NumIndexedColumns)
        (_, position) => limit < 0 || position < limit
    }
    StatisticsColumns(
      new Selection(wanted, needed.toSet, physicalName).children(dataSchema, Nil, Nil),
      intProperty(properties, StringPrefixLength)
    )
  }

  /** A traversal of the schema that counts the leaves it visits and those it selects. */
  private final class Selection(
      wanted: (Seq[String], Int) => Boolean,
      needed: Set[Seq[String]],
      physicalName: StructField => String
  ) {
    private var visited = 0
    private var selected = 0

    def children(
        schema: StructType,
        logicalParent: Seq[String],
        physicalParent: Seq[String]
    ): Seq[StatisticsNode] = schema.fields.toSeq.flatMap { field =>
      val logical = logicalParent :+ field.name
      val physical = physicalParent :+ physicalName(field)
      field.dataType match {
        case struct: StructType =>
          val below = children(struct, logical, physical)
          if (below.isEmpty) None else Some(StatisticsGroup(physical.last, below))
        case _ => leaf(logical, physical, field)
      }
    }

    private def leaf(
        logical: Seq[String],
        physical: Seq[String],
        field: StructField
    ): Option[StatisticsLeaf] = {
      val position = visited
      visited += 1
      Option.when(wanted(logical, position) || needed(physical)) {
        selected += 1
        val mayHoldFloats = TypeChange.of(field).exists(_.from == "float")
        StatisticsLeaf(physical.last, selected - 1, physical, field.dataType, mayHoldFloats)
      }
    }
  }

  /** Splits at the commas outside of backticks. */
  private def splitNames(list: String): Seq[String] =
    list.split(",(?=(?:[^`]*`[^`]*`)*[^`]*$)").toSeq.map(_.trim).filter(_.nonEmpty)

  private def parseName(name: String): Seq[String] =
    try CatalystSqlParser.parseMultipartIdentifier(name)
    catch { case e: Exception => throw invalidProperty(NamedColumns, name, e) }

  /** A number that the table sets, or its default. */
  private[write] def intProperty(properties: Map[String, String], name: String): Int =
    TableProperties.int(properties, name).getOrElse {
      throw invalidProperty(name, TableProperties.value(properties, name).getOrElse(""))
    }

  private[write] def invalidProperty(
      name: String,
      value: String,
      cause: Throwable = null
  ): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_INVALID_TABLE_PROPERTY_VALUE",
      Map("property" -> name, "value" -> value),
      cause
    )
}
