package io.deltaic

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.scalacheck.Gen

/** Ways to damage files. */
object Damage {

  private val mapper = new ObjectMapper()

  /** The same bytes with one to three places overwritten, cut out, doubled or cut off. */
  def bytes(whole: Array[Byte]): Gen[Array[Byte]] = bytes(whole, whole.length)

  /** @param below only bytes before this position are damaged */
  def bytes(whole: Array[Byte], below: Int): Gen[Array[Byte]] =
    Gen.choose(1, 3).flatMap { times =>
      (1 to times).foldLeft(Gen.const(whole)) { (before, _) =>
        before.flatMap(once(_, math.min(below, whole.length)))
      }
    }

  /** The same length, so that later bytes keep their positions. */
  def overwritten(whole: Array[Byte], below: Int): Gen[Array[Byte]] =
    for {
      at <- Gen.choose(0, below - 1)
      length <- Gen.oneOf(1, 1, 2, 4, 30)
      replacement <- Gen.listOfN(length, Gen.choose(Byte.MinValue, Byte.MaxValue))
    } yield whole.patch(at, replacement.take(below - at), replacement.take(below - at).length)

  private def once(whole: Array[Byte], below: Int): Gen[Array[Byte]] =
    if (whole.isEmpty || below == 0) Gen.const(whole)
    else
      for {
        at <- Gen.choose(0, math.min(below, whole.length) - 1)
        length <- Gen.choose(1, 40)
        made <- Gen.oneOf(
          overwritten(whole, math.min(below, whole.length)),
          Gen.const(whole.patch(at, Nil, length)),
          Gen.const(whole.patch(at, whole.slice(at, at + length), 0)),
          Gen.const(whole.take(at)),
          Gen.oneOf("{}[],:\"\\\n 0e-tn".toSeq).map(c => whole.patch(at, Seq(c.toByte), 1))
        )
      } yield made

  /** The same JSON with one value replaced by another, or one member missing. */
  def json(whole: JsonNode): Gen[JsonNode] = {
    val places = below(Nil, whole)
    for {
      place <- Gen.oneOf(places)
      value <- Gen.option(Gen.oneOf(values))
    } yield replaced(whole.deepCopy[JsonNode](), place, value)
  }

  /** A wrong value, as a faulty writer may write it. */
  private val values: Seq[String] = Seq(
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e400",
    "1e999999999",
    "9223372036854775807",
    "99999999999999999999999999",
    "\"\"",
    "\"x\"",
    "\"7\"",
    "\"../../../etc/passwd\"",
    "\"nothing://a b/%zz\"",
    "\":\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "[]",
    "{}",
    "[null]",
    "{\"a\":{\"b\":[1]}}",
    "[[[[[[[[]]]]]]]]"
  )

  private type Place = List[Either[String, Int]]

  private def below(place: Place, node: JsonNode): Seq[Place] = node match {
    case o: ObjectNode => o.properties.asScala.toSeq.flatMap { e =>
        val inner = place :+ Left(e.getKey)
        inner +: below(inner, e.getValue)
      }
    case a: ArrayNode => (0 until a.size).flatMap { i =>
        val inner = place :+ Right(i)
        inner +: below(inner, a.get(i))
      }
    case _ => Nil
  }

  private def replaced(whole: JsonNode, place: Place, value: Option[String]): JsonNode = {
    val parent = place.init.foldLeft(whole) {
      case (node, Left(name)) => node.get(name)
      case (node, Right(index)) => node.get(index)
    }
    (parent, place.last, value.map(mapper.readTree)) match {
      case (o: ObjectNode, Left(name), Some(v)) => o.set[JsonNode](name, v)
      case (o: ObjectNode, Left(name), None) => o.remove(name)
      case (a: ArrayNode, Right(index), Some(v)) => a.set(index, v)
      case (a: ArrayNode, Right(index), None) => a.remove(index)
      case other => throw new IllegalStateException(other.toString)
    }
    whole
  }
}
