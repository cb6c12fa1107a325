package io.deltaic.spark.commit.lineage

import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode

import io.deltaic.protocol.AddFile
import io.deltaic.spark.util.Json

/**
 * Which files the rows of an ordered file come from, as a tag of its `add`. It does not say which row is where, so rows
 * are not found by it. But a commit that needs the inputs can take the ordered rewrite back (docs/decisions/0049).
 *
 * @param first the position of the first input among the `remove`s of the commit
 * @param count the number of inputs, which follow each other; each may have rows in the file
 */
private[spark] final case class InputFiles(first: Int, count: Int) {
  def positions: Set[Int] = (first until first + count).toSet

  /** The same after some of the `remove`s were left out; none if no input is left. */
  def without(dropped: Set[Int]): Option[InputFiles] = {
    val left = positions -- dropped
    Option.when(left.nonEmpty)(InputFiles(first - dropped.count(_ < first), left.size))
  }

  def tag: (String, String) =
    InputFiles.Tag -> Json.obj("first" -> first, "count" -> count).toString
}

private[spark] object InputFiles {
  val Tag = "deltaic.inputs"

  /** None for a file without the tag, or with a tag that cannot be parsed. */
  def of(add: AddFile): Option[InputFiles] =
    add.tags.get(Tag).flatMap(Json.tryParse).flatMap { json =>
      Try(InputFiles(number(json, "first"), number(json, "count"))).toOption
    }

  /** The file after some of the `remove`s of its commit were left out. */
  def without(add: AddFile, dropped: Set[Int]): AddFile =
    of(add).fold(add) { inputs =>
      add.copy(tags = add.tags - Tag ++ inputs.without(dropped).map(_.tag))
    }

  private def number(json: JsonNode, field: String): Int = {
    val value = json.required(field)
    require(value.canConvertToInt && value.intValue >= 0)
    value.intValue
  }
}
