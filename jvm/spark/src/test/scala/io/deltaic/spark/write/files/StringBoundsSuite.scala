package io.deltaic.spark.write.files

import java.nio.charset.StandardCharsets
import java.util.Arrays

import org.scalacheck.Gen
import org.scalacheck.Prop._

class StringBoundsSuite extends munit.ScalaCheckSuite {
  private def utf8(text: String): Array[Byte] = text.getBytes(StandardCharsets.UTF_8)

  private def codePoint(value: Int): String = Character.toString(value)

  test("a short string is its own bound") {
    Seq("", "a", "x" * 32, "漢" * 32, codePoint(0x1f600) * 32).foreach { text =>
      assertEquals(StringBounds.lower(utf8(text), 32), Some(text))
      assertEquals(StringBounds.upper(utf8(text), 32), Some(text))
    }
  }

  test("a longer string is truncated, and the upper bound has a character appended") {
    val text = codePoint(0x1f600) * 33
    assertEquals(StringBounds.lower(utf8(text), 32), Some(codePoint(0x1f600) * 32))
    val next = codePoint(Character.MAX_CODE_POINT)
    assertEquals(StringBounds.upper(utf8(text), 32), Some(codePoint(0x1f600) * 32 + next))
    assertEquals(StringBounds.upper(utf8("a" * 33), 32), Some("a" * 32 + "\u007f"))
    assertEquals(StringBounds.upper(utf8("\u00e4" * 33), 32), Some("\u00e4" * 32 + next))
    assertEquals(StringBounds.upper(utf8("\u007f" * 33), 32), Some("\u007f" * 32 + next))
  }

  test("no character is greater than the last code point: no upper bound") {
    val text = "a" + codePoint(Character.MAX_CODE_POINT) * 2
    assertEquals(StringBounds.lower(utf8(text), 1), Some("a"))
    assertEquals(StringBounds.upper(utf8(text), 1), None)
  }

  test("bytes that are not UTF-8 have no bounds") {
    val invalid = Array[Byte]('a', 0xff.toByte)
    assertEquals(StringBounds.lower(invalid, 32), None)
    assertEquals(StringBounds.upper(invalid, 32), None)
    // Cut off right behind the prefix: the appended character might not be greater.
    assertEquals(StringBounds.upper(utf8("a" * 32) :+ 0xff.toByte, 32), None)
    // An incomplete character at the end.
    assertEquals(StringBounds.upper(Array(0xe6.toByte, 0xbc.toByte), 32), None)
  }

  private val anyCodePoint = Gen.frequency(
    5 -> Gen.choose(0x20, 0x7e),
    2 -> Gen.choose(0, 0xd7ff),
    2 -> Gen.choose(0xe000, 0xffff),
    2 -> Gen.choose(0x10000, 0x10ffff),
    1 -> Gen.oneOf(0x7e, 0x7f, 0x80, 0xfffd, 0x10fffe, 0x10ffff)
  )

  property("bounds enclose every string in the order of UTF-8 bytes") {
    forAll(Gen.listOf(anyCodePoint), Gen.choose(0, 8)) { (codePoints, length) =>
      val bytes = utf8(codePoints.map(codePoint).mkString)
      val lower = StringBounds.lower(bytes, length).getOrElse(fail("no lower bound"))
      assert(Arrays.compareUnsigned(utf8(lower), bytes) <= 0)
      assert(lower.codePointCount(0, lower.length) <= length)
      val rest = codePoints.drop(length)
      StringBounds.upper(bytes, length) match {
        case Some(upper) => assert(Arrays.compareUnsigned(utf8(upper), bytes) >= 0)
        case None => assertEquals(rest.headOption, Some(Character.MAX_CODE_POINT))
      }
    }
  }
}
