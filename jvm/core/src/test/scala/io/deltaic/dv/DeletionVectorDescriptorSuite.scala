package io.deltaic.dv

import java.util.UUID

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{DeletionVectorDescriptor, DeltaicThrowable}

class DeletionVectorDescriptorSuite extends StoreFixture {

  private val table = new Path("s3://mytable")
  private val inline = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"

  private def relative(id: String): DeletionVectorDescriptor =
    DeletionVectorDescriptor("u", id, Some(4), 40, 6)

  private def absolute(path: String): DeletionVectorDescriptor =
    DeletionVectorDescriptor("p", path, Some(4), 40, 6)

  test("storage type u, the protocol's example: prefix and UUID give the path below the table") {
    assertEquals(
      relative("ab^-aqEH.-t@S}K{vb[*k^").absolutePath(table),
      Some(new Path("s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"))
    )
  }

  test("storage type u without a prefix: the file is in the table's directory") {
    assertEquals(
      relative("^-aqEH.-t@S}K{vb[*k^").absolutePath(new Path("file:/data/my table")),
      Some(new Path("file:/data/my table/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"))
    )
  }

  test("storage type p, the protocol's example: the path is absolute") {
    val path = "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assertEquals(absolute(path).absolutePath(new Path("/other")), Some(new Path(path)))
  }

  test("storage type p: the path is URI-encoded, and without a scheme in the table's store") {
    Seq(
      "file:///data/my%20table/50%25.bin" -> new Path("file:/data/my table/50%.bin"),
      "file:/data/my table/50%.bin" -> new Path("file:/data/my table/50%.bin"),
      "/data/my%20dv.bin" -> new Path("s3", "mytable", "/data/my dv.bin"),
      "/data/[my dv].bin" -> new Path("s3", "mytable", "/data/[my dv].bin")
    ).foreach { case (spelled, path) =>
      assertEquals(absolute(spelled).absolutePath(table), Some(path), spelled)
    }
  }

  test("storage type i has bytes and no path, the others have no inline bytes") {
    val descriptor = DeletionVectorDescriptor("i", inline, None, 40, 6)
    assertEquals(descriptor.absolutePath(table), None)
    assertEquals(descriptor.inlineBytes.map(_.length), Some(40))
    assertEquals(absolute("/x.bin").inlineBytes, None)
  }

  test("the unique id appends the offset only if there is one") {
    assertEquals(relative("ab^-aqEH.-t@S}K{vb[*k^").uniqueId, "uab^-aqEH.-t@S}K{vb[*k^@4")
    assertEquals(DeletionVectorDescriptor("i", inline, None, 40, 6).uniqueId, s"i$inline")
  }

  test("the id of a written file resolves to the file") {
    val uuid = UUID.randomUUID()
    Seq("", "x", "a9Z").foreach { prefix =>
      assertEquals(
        relative(DeletionVectorDescriptor.relativeId(prefix, uuid)).absolutePath(table),
        Some(DeletionVectorDescriptor.relativePath(table, prefix, uuid))
      )
    }
  }

  Seq(
    "an unknown storage type" -> relative("^-aqEH.-t@S}K{vb[*k^").copy(storageType = "x"),
    "a UUID that is too short" -> relative("^-aqEH"),
    "a UUID that is not Z85" -> relative("^-aqEH.-t@S}K{vb[*k\""),
    "a prefix that leads out of the table" -> relative("../^-aqEH.-t@S}K{vb[*k^"),
    "a prefix that is the parent directory" -> relative("..^-aqEH.-t@S}K{vb[*k^"),
    "a prefix with a scheme" -> relative("s3:^-aqEH.-t@S}K{vb[*k^"),
    "a path that is not absolute" -> absolute("a/b.bin"),
    "an empty path" -> absolute(""),
    "a negative offset" -> absolute("/b.bin").copy(offset = Some(-1)),
    "a negative size" -> absolute("/b.bin").copy(sizeBytes = -1),
    "a negative cardinality" -> absolute("/b.bin").copy(cardinality = -1)
  ).foreach { case (what, descriptor) =>
    test(s"$what has no path: the error names table and vector") {
      val error = intercept[DeltaicThrowable](descriptor.absolutePath(table))
      assertEquals(error.condition, "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID")
      requireFilledMessage(error)
      assertEquals(error.parameters("table"), "s3://mytable")
      assertEquals(error.parameters("deletionVector"), descriptor.uniqueId)
    }
  }

  Seq(
    "a size that does not match the string" -> DeletionVectorDescriptor("i", inline, None, 44, 6),
    "an offset" -> DeletionVectorDescriptor("i", inline, Some(1), 40, 6),
    "an absurd size" -> DeletionVectorDescriptor("i", inline, None, Int.MaxValue, 6)
  ).foreach { case (what, descriptor) =>
    test(s"an inline vector with $what is refused") {
      val error = intercept[DeltaicThrowable](descriptor.inlineBytes)
      assertEquals(error.condition, "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID")
    }
  }

  test("an error shows only the start of a long inline vector") {
    val long = DeletionVectorDescriptor("i", inline * 1000, None, 40, 6)
    val error = intercept[DeltaicThrowable](long.inlineBytes)
    assert(error.parameters("deletionVector").length < 300)
  }
}
