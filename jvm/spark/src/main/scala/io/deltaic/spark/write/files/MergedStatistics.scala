package io.deltaic.spark.write.files

import java.math.{BigDecimal => JBigDecimal}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.types.NumericType
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.util.Json

/**
 * The statistics of a file that consists of the row groups of others. Each of them has statistics of
 * [[FileStatistics]].
 *
 * As there, a bound that is not known is left out: one part without it suffices, unless all of its values are
 * null.
 */
private[write] object MergedStatistics {

  def json(parts: Seq[String], columns: StatisticsColumns): String = {
    val all = parts.map(Json.parse)
    val merged = Json.obj("numRecords" -> all.map(rows).sum)
    val (minValues, maxValues, nullCounts) = (Json.obj(), Json.obj(), Json.obj())
    columns.leaves.foreach { leaf =>
      val nulls = all.map(at(_, "nullCount", leaf.path))
      bound(all, nulls, "minValues", leaf, -1).foreach(put(minValues, leaf.path, _))
      bound(all, nulls, "maxValues", leaf, 1).foreach(put(maxValues, leaf.path, _))
      if (nulls.forall(_.isDefined))
        put(nullCounts, leaf.path, Json.of(nulls.flatten.map(_.longValue).sum))
    }
    merged.set[JsonNode]("minValues", minValues)
    merged.set[JsonNode]("maxValues", maxValues)
    merged.set[JsonNode]("nullCount", nullCounts)
    merged.put("tightBounds", true)
    merged.toString
  }

  private def rows(statistics: ObjectNode): Long = statistics.required("numRecords").longValue

  /** @param sign 1 for the largest value, -1 for the smallest */
  private def bound(
      all: Seq[ObjectNode],
      nulls: Seq[Option[JsonNode]],
      kind: String,
      leaf: StatisticsLeaf,
      sign: Int
  ): Option[JsonNode] = {
    val withValues = all.zip(nulls).collect {
      case (statistics, count) if !count.exists(_.longValue == rows(statistics)) => statistics
    }
    val bounds = withValues.map(at(_, kind, leaf.path))
    if (bounds.isEmpty || bounds.exists(_.isEmpty)) None
    else
      Some(bounds.flatten.reduceLeft { (one, other) =>
        if (compare(one, other, leaf) * sign >= 0) one else other
      })
  }

  /** Strings are ordered by code points. Those of dates and timestamps have years of four digits. */
  private def compare(one: JsonNode, other: JsonNode, leaf: StatisticsLeaf): Int =
    leaf.dataType match {
      case _: NumericType => number(one).compareTo(number(other))
      case _ => text(one).compareTo(text(other))
    }

  private def number(value: JsonNode): JBigDecimal = value.decimalValue
  private def text(value: JsonNode): UTF8String = UTF8String.fromString(value.textValue)

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
