package io.deltaic.dv

import java.util.UUID

import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.protocol.Z85

class Z85Suite extends ScalaCheckSuite {

  private val bytes: Gen[Array[Byte]] =
    Gen.choose(0, 40).flatMap { n =>
      Gen.containerOfN[Array, Byte](n, Gen.choose(Byte.MinValue, Byte.MaxValue))
    }

  test("the test vector of ZeroMQ RFC 32 encodes to HelloWorld") {
    val words = Array(0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b).map(_.toByte)
    assertEquals(Z85.encode(words), "HelloWorld")
    assertEquals(Z85.decode("HelloWorld", 8).map(_.toSeq), Right(words.toSeq))
  }

  test("the protocol's example of a UUID decodes and encodes") {
    val uuid = UUID.fromString("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    assertEquals(Z85.decodeUuid("^-aqEH.-t@S}K{vb[*k^"), Right(uuid))
    assertEquals(Z85.encodeUuid(uuid), "^-aqEH.-t@S}K{vb[*k^")
  }

  property("bytes of any length round-trip, and the string is whole groups") {
    forAll(bytes) { data =>
      val text = Z85.encode(data)
      assertEquals(text.length, (data.length + 3) / 4 * 5)
      assertEquals(Z85.decode(text, data.length).map(_.toSeq), Right(data.toSeq))
    }
  }

  property("an incomplete last group is padded with zero bytes") {
    forAll(bytes) { data =>
      assertEquals(Z85.encode(data), Z85.encode(data.padTo((data.length + 3) / 4 * 4, 0.toByte)))
    }
  }

  property("any string is decoded or refused without an exception") {
    forAll(Gen.asciiStr, Gen.choose(-5, 100)) { (text: String, size: Int) =>
      Z85.decode(text, size).foreach(decoded => assertEquals(decoded.length, size))
    }
  }

  Seq(
    ("characters outside of the alphabet", "Hello\"orld", 8, "character 6 of"),
    ("characters outside of ASCII", "Hell\u00f6World", 8, "character 5 of"),
    ("groups above 2^32 - 1", "#####", 4, "too large"),
    ("too few characters", "HelloWorl", 8, "need 10 Z85 characters"),
    ("too many characters", "HelloWorld", 4, "need 5 Z85 characters"),
    ("negative sizes", "HelloWorld", -1, "negative"),
    ("absurd sizes without allocating", "HelloWorld", Int.MaxValue, "need 2684354560")
  ).foreach { case (what, text, size, reason) =>
    test(s"decode refuses $what") {
      val refused = Z85.decode(text, size).swap.getOrElse(fail("was decoded"))
      assert(refused.contains(reason), refused)
    }
  }
}
