package io.deltaic.spark.commit

import com.fasterxml.jackson.databind.node.ObjectNode
import munit.FunSuite

import io.deltaic.spark.util.Json

/** Long strings of requests and responses, with a peer that caches the strings it receives. */
class InternedStringsSuite extends FunSuite {
  private val wide = "wide " * 10000

  /** Returns the request with its strings restored, or requests those that it lacks. */
  private final class Peer {
    var sent: Vector[String] = Vector.empty
    private var cached = Map.empty[String, String]

    def respond(request: String): String = {
      sent :+= request
      val body = Json.parse(request)
      cached ++= Json.strings(body.get("strings"))
      val places = body.path("interned")
      if (places.valueStream.anyMatch(p => !cached.contains(p.get("digest").textValue)))
        return """{"missing": true}"""
      places.forEach(p =>
        p.get("at").asInstanceOf[com.fasterxml.jackson.databind.node.ArrayNode].insert(0, "ok")
      )
      body.remove("strings")
      val response = Json.obj("ok" -> body.deepCopy())
      response.get("ok").asInstanceOf[ObjectNode].remove("interned")
      if (!places.isMissingNode) response.set[ObjectNode]("interned", places)
      response.toString
    }
  }

  private def request(string: String) =
    Json.obj("a" -> Json.obj("b/c" -> string, "n" -> 1), "s" -> "short", "none" -> None)

  test("a long string crosses once, and responses refer to it") {
    val peer = new Peer
    val sent = request(wide)
    for (_ <- 1 to 2) assertEquals(InternedStrings.send(sent)(peer.respond).get("ok"), sent)
    assertEquals(peer.sent.map(_.contains(wide)), Vector(false, true, false))
    assertEquals(sent, request(wide), "the request itself was changed")
  }

  test("a short string is sent as it is") {
    val peer = new Peer
    assertEquals(InternedStrings.send(request("b"))(peer.respond).get("ok"), request("b"))
    assertEquals(peer.sent, Vector(request("b").toString))
  }
}
