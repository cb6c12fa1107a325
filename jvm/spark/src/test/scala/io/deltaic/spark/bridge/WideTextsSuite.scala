package io.deltaic.spark.bridge

import com.fasterxml.jackson.databind.node.ObjectNode
import munit.FunSuite

/** Long texts of questions and answers, with an other side that remembers what it was told. */
class WideTextsSuite extends FunSuite {
  private val wide = "wide " * 10000

  /** Answers with the question, its texts where they belong, and asks for those that it lacks. */
  private final class Other {
    var sent: Vector[String] = Vector.empty
    private var known = Map.empty[String, String]

    def answer(question: String): String = {
      sent :+= question
      val body = Json.parse(question)
      known ++= Json.strings(body.get("texts"))
      val places = body.path("wide")
      if (places.valueStream.anyMatch(p => !known.contains(p.get("digest").textValue)))
        return """{"lacks": true}"""
      places.forEach(p =>
        p.get("at").asInstanceOf[com.fasterxml.jackson.databind.node.ArrayNode].insert(0, "ok")
      )
      body.remove("texts")
      val answer = Json.obj("ok" -> body.deepCopy())
      answer.get("ok").asInstanceOf[ObjectNode].remove("wide")
      if (!places.isMissingNode) answer.set[ObjectNode]("wide", places)
      answer.toString
    }
  }

  private def question(text: String) =
    Json.obj("a" -> Json.obj("b/c" -> text, "n" -> 1), "s" -> "short", "none" -> None)

  test("a long text crosses once, and answers speak of it without it") {
    val other = new Other
    val asked = question(wide)
    for (_ <- 1 to 2) assertEquals(WideTexts.ask(asked)(other.answer).get("ok"), asked)
    assertEquals(other.sent.map(_.contains(wide)), Vector(false, true, false))
    assertEquals(asked, question(wide), "the question itself was changed")
  }

  test("what is short crosses as it is") {
    val other = new Other
    assertEquals(WideTexts.ask(question("b"))(other.answer).get("ok"), question("b"))
    assertEquals(other.sent, Vector(question("b").toString))
  }
}
