package io.deltaic.spark.skipping

import java.io.IOException
import java.util.{BitSet, HashMap => JHashMap}

import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.core.{JsonFactory, JsonFactoryBuilder, JsonParser, JsonToken}

import io.deltaic.spark.schema.LeafColumn

/**
 * The statistics of one column: its bounds, if its type has any, and its null count.
 */
final private[skipping] class LeafStats(val leaf: LeafColumn, size: Int) {
  private val bound: Option[StoredBound] = StoredBound.of(leaf)
  private val minValues = bound.map(_.newColumn(size))
  private val maxValues = bound.map(_.newColumn(size))
  val nullCount: LongColumn = new LongColumn(size)

  /** Blocks of files whose statistics have been read ([[FileStatsColumns]]). */
  val decodedBlocks: BitSet = new BitSet

  def retainedBytes: Long =
    nullCount.retainedBytes + minValues.fold(0L)(_.retainedBytes) + maxValues.fold(0L)(
      _.retainedBytes
    )

  def min: FileColumn = minValues.get
  def max: FileColumn = maxValues.get

  def read(kind: StatKind, json: JsonParser, i: Int): Unit = kind match {
    case StatKind.NullCount => LeafStats.readCount(json, nullCount, i)
    case StatKind.Min => readBound(json, lower = true, minValues, i)
    case StatKind.Max => readBound(json, lower = false, maxValues, i)
  }

  private def readBound(
      json: JsonParser,
      lower: Boolean,
      column: Option[MutableFileColumn],
      i: Int
  ): Unit = bound.foreach(b => b.read(json, lower, column.get.asInstanceOf[b.Column], i))

  def setNull(i: Int): Unit = {
    nullCount.setNull(i)
    minValues.foreach(_.setNull(i))
    maxValues.foreach(_.setNull(i))
  }
}

private[skipping] object LeafStats {
  def readCount(json: JsonParser, column: LongColumn, i: Int): Unit =
    if (
      json.currentToken == JsonToken.VALUE_NUMBER_INT &&
      json.getNumberType != JsonParser.NumberType.BIG_INTEGER && json.getLongValue >= 0
    ) column.set(i, json.getLongValue)
}

/** The statistics of a whole file. */
final private[skipping] class FileTotals(size: Int) {
  val numRecords: LongColumn = new LongColumn(size)
  val tightBounds: LongColumn = new LongColumn(size)
  val decodedBlocks: BitSet = new BitSet

  def retainedBytes: Long = numRecords.retainedBytes + tightBounds.retainedBytes

  def readTightBounds(json: JsonParser, i: Int): Unit = json.currentToken match {
    case JsonToken.VALUE_TRUE => tightBounds.set(i, 1)
    case JsonToken.VALUE_FALSE => tightBounds.set(i, 0)
    case _ =>
  }

  def setNull(i: Int): Unit = {
    numRecords.setNull(i)
    tightBounds.setNull(i)
  }
}

sealed private[skipping] trait StatKind
private[skipping] object StatKind {
  case object Min extends StatKind
  case object Max extends StatKind
  case object NullCount extends StatKind

  /** The field of the statistics that holds this kind (Protocol § Per-file Statistics). */
  val ofField: Map[String, StatKind] =
    Map("minValues" -> Min, "maxValues" -> Max, "nullCount" -> NullCount)
}

/**
 * Reads one file's statistics into the requested columns, and skips everything else. One reader may
 * be used by several threads for different files.
 *
 * @param totals None if they have been read before
 */
final private[skipping] class StatsJson(totals: Option[FileTotals], leaves: Seq[LeafStats]) {
  import StatsJson._

  private val root: Node = {
    val node = new Node
    leaves.foreach(l => l.leaf.statsPath.foldLeft(node)(_.child(_)).leaf = l)
    node
  }

  /**
   * Invalid JSON is treated as missing statistics: they are a hint, so a query must not fail.
   */
  def read(stats: String, i: Int): Unit =
    try {
      val json = Factory.createParser(stats)
      try if (json.nextToken() == JsonToken.START_OBJECT) readFile(json, i)
      finally json.close()
    } catch {
      case _: IOException =>
        totals.foreach(_.setNull(i))
        leaves.foreach(_.setNull(i))
    }

  private def readFile(json: JsonParser, i: Int): Unit = {
    var field = json.nextFieldName()
    while (field != null) {
      json.nextToken()
      field match {
        case "numRecords" => totals.foreach(t => LeafStats.readCount(json, t.numRecords, i))
        case "tightBounds" => totals.foreach(_.readTightBounds(json, i))
        case _ =>
      }
      StatKind.ofField.get(field) match {
        case Some(kind) if json.currentToken == JsonToken.START_OBJECT =>
          readColumns(json, root, kind, i)
        case _ => json.skipChildren()
      }
      field = json.nextFieldName()
    }
  }

  private def readColumns(json: JsonParser, node: Node, kind: StatKind, i: Int): Unit = {
    var field = json.nextFieldName()
    while (field != null) {
      val token = json.nextToken()
      val child = node.children.get(field)
      if (child == null) json.skipChildren()
      else if (token == JsonToken.START_OBJECT) readColumns(json, child, kind, i)
      else if (child.leaf != null && token.isScalarValue) child.leaf.read(kind, json, i)
      else json.skipChildren()
      field = json.nextFieldName()
    }
  }
}

private object StatsJson {

  /** Some writers spell NaN and the infinities without quotes. */
  private val Factory: JsonFactory =
    new JsonFactoryBuilder().enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build()

  final private class Node {
    val children = new JHashMap[String, Node]
    var leaf: LeafStats = _

    def child(name: String): Node = children.computeIfAbsent(name, _ => new Node)
  }
}
