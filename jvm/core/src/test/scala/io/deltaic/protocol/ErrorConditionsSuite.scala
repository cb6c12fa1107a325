package io.deltaic.protocol

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._

class ErrorConditionsSuite extends munit.FunSuite {

  private val sources = {
    val root = Iterator
      .iterate(LocalPath.of("").toAbsolutePath)(_.getParent)
      .takeWhile(_ != null)
      .map(_.resolve("jvm"))
      .find(Files.isDirectory(_))
      .get
    val files = Files.walk(root)
    try
      files.iterator.asScala
        .filter(f => f.toString.endsWith(".scala") && f.toString.contains("/src/main/"))
        .map(f => Files.readString(f))
        .toVector
    finally files.close()
  }

  test("every condition that the sources raise has a message") {
    val raised = sources.flatMap("\"(DELTAIC_[A-Z_]+)\"".r.findAllMatchIn(_).map(_.group(1))).toSet
    assert(raised.nonEmpty)
    assertEquals(raised -- ErrorConditions.names, Set.empty[String])
  }

  test(
    "exceptions are created by DeltaicException(...) and caught by the trait"
  ) {
    val others = "new DeltaicException\\(|: DeltaicException\\b(?!\\()|\\[DeltaicException\\]".r
    val definition = "class DeltaicException("
    val found = sources.filterNot(_.contains(definition)).flatMap(others.findFirstIn(_))
    assertEquals(found, Vector.empty[String])
  }

  test("a message is rendered with its parameters in their places, dollar signs and all") {
    val e = DeltaicException(
      "DELTAIC_LOG_GAP",
      Map("table" -> "/t$1", "missing" -> "3", "before" -> "2", "after" -> "4")
    )
    assert(e.getMessage.startsWith("[DELTAIC_LOG_GAP] The log of table /t$1 has a gap"))
    assert(!e.getMessage.contains("<"), e.getMessage)
    assertEquals(ActionJson.mapper.readTree(e.getParametersJson).get("missing").textValue, "3")
  }

  test("unprintable characters are escaped") {
    val e = DeltaicException(
      "DELTAIC_ACTION_MALFORMED",
      Map("reason" -> "it is\nno JSON", "action" -> "PAR1\u0000\u0015\uFFFD{")
    )
    assert(e.getMessage.contains("it is\nno JSON"), e.getMessage)
    assert(e.getMessage.contains("PAR1\\u0000\\u0015\\ufffd{"), e.getMessage)
  }

  test("an unknown condition or a missing parameter still gives a readable message") {
    assertEquals(
      DeltaicException("DELTAIC_NO_SUCH", Map("a" -> "b")).getMessage,
      "[DELTAIC_NO_SUCH] a: b SQLSTATE: XXKDS"
    )
    assert(DeltaicException("DELTAIC_NOT_A_TABLE", Map.empty).getMessage.contains("<table>"))
  }
}
