package io.deltaic.spark.commit.lineage

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.util.Json

/**
 * Which files the rows of a compacted file come from, as a tag of its `add`
 * (docs/decisions/0047-a-compacted-file-knows-its-inputs.md).
 *
 * @param first the position of its first input among the `remove`s of the commit
 * @param from the number of live rows of that input that are in the file before this one
 * @param rows the numbers of consecutive rows: of `first` and the inputs that follow it; a negative number is
 *   one of rows whose input is not among the `remove`s
 * @param vectors the deletion vectors with which inputs were read, by their positions, if others were added to the
 *   inputs until the commit
 */
private[spark] final case class Lineage(
    first: Int,
    from: Long,
    rows: Seq[Long],
    vectors: Map[Int, Option[DeletionVectorDescriptor]] = Map.empty
) {
  def numRows: Long = rows.iterator.map(_.abs).sum

  /** The positions of the inputs, each with its number of rows; none for rows without an input. */
  def inputs: Seq[(Option[Int], Long)] =
    rows.scanLeft((first - 1, Option.empty[Int], 0L)) {
      case ((last, _, _), count) if count < 0 => (last, None, -count)
      case ((last, _, _), count) => (last + 1, Some(last + 1), count)
    }.drop(1).map { case (_, input, count) => (input, count) }

  /** The same after some of the `remove`s were left out. */
  def without(dropped: Set[Int]): Lineage = {
    def moved(input: Int): Int = input - dropped.count(_ < input)
    Lineage(
      moved(first),
      if (dropped(first)) 0L else from,
      inputs.collect {
        case (Some(input), count) if !dropped(input) => count
        case (_, count) if count > 0 => -count
      },
      vectors.collect { case (input, vector) if !dropped(input) => moved(input) -> vector }
    )
  }

  def tag: (String, String) = {
    val json = Json.obj("first" -> first, "rows" -> rows)
    if (from > 0) json.put("from", from)
    if (vectors.nonEmpty)
      json.set[JsonNode](
        "vectors",
        Json.of(vectors.map { case (input, vector) =>
          input -> vector.map(Lineage.fields)
        })
      )
    Lineage.Tag -> json.toString
  }
}

private[spark] object Lineage {
  val Tag = "deltaic.lineage"

  /** None for a file without the tag, or with a tag that cannot be parsed. */
  def of(add: AddFile): Option[Lineage] =
    add.tags.get(Tag).flatMap(Json.tryParse).flatMap(json => Try(parse(json)).toOption)

  private def parse(json: ObjectNode): Lineage = Lineage(
    json.required("first").intValue,
    json.path("from").longValue,
    json.required("rows").elements.asScala.map(_.longValue).toVector,
    json.path("vectors").properties().asScala.map { entry =>
      entry.getKey.toInt -> Option.unless(entry.getValue.isNull)(descriptor(entry.getValue))
    }.toMap
  )

  private def fields(vector: DeletionVectorDescriptor): Seq[Any] = Seq(
    vector.storageType,
    vector.pathOrInlineDv,
    vector.offset,
    vector.sizeBytes,
    vector.cardinality
  )

  private def descriptor(fields: JsonNode): DeletionVectorDescriptor = DeletionVectorDescriptor(
    fields.required(0).textValue,
    fields.required(1).textValue,
    Option.unless(fields.required(2).isNull)(fields.required(2).intValue),
    fields.required(3).intValue,
    fields.required(4).longValue
  )
}
