package io.deltaic.dv

import java.nio.ByteBuffer
import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.fs.Path

import io.deltaic.dv.RowSets.{rowsOf, vector}
import io.deltaic.protocol.DeletionVectorDescriptor

class DeletionVectorStoreSuite extends StoreFixture {

  private val corrupt = "DELTAIC_DELETION_VECTOR_CORRUPT"
  private val unsupported = "DELTAIC_DELETION_VECTOR_FORMAT_UNSUPPORTED"
  private val invalid = "DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID"

  private val example = DeletionVectorDescriptor(
    "i",
    "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    None,
    40,
    6
  )

  /**
   * The example's rows as Protocol § Deletion Vector Format describes them: magic number, one
   * bucket, key 0, and the bitmap, which the example holds behind 12 bytes of the older layout.
   */
  private lazy val current: Seq[Byte] =
    Seq(0xd1, 0xd3, 0x39, 0x64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0).map(_.toByte) ++
      example.inlineBytes.get.drop(12)

  /** One file with three vectors: the first one at offset 1, the last one far into the file. */
  private def written(table: LocalPath): Seq[DeletionVectorDescriptor] = {
    val writer = store.newWriter(tablePath(table))
    try Seq(vector(Seq(1L, 9L)), vector(0L until 200000L by 5), vector(Seq(7L))).map(writer.add)
    finally writer.close()
  }

  test("inline, the protocol's example: rows 3, 4, 7, 11, 18, 29") {
    val read = store.read(new Path("/t"), dataFile, example)
    assertEquals(rowsOf(read), Seq(3L, 4L, 7L, 11L, 18L, 29L))
  }

  test("inline vectors are written in the current layout, and round-trip") {
    val written = store.inline(vector(Seq(3L, 4L, 7L, 11L, 18L, 29L)))
    assertEquals(written.inlineBytes.map(_.toSeq), Some(current))
    assertEquals(written.copy(pathOrInlineDv = ""), DeletionVectorDescriptor("i", "", None, 44, 6))
    val read = store.read(new Path("/t"), dataFile, written)
    assertEquals(rowsOf(read), Seq(3L, 4L, 7L, 11L, 18L, 29L))
  }

  test("inline: a wrong cardinality is an error") {
    val error = refusal(new Path("/t"), example.copy(cardinality = 5), corrupt)
    assertEquals(error.parameters("location"), "the transaction log")
    assertEquals(error.parameters("reason"), "the log says 5 rows, the vector has 6")
  }

  test("inline: a damaged string is an error") {
    val damaged = example.pathOrInlineDv
    refusal(new Path("/t"), example.copy(pathOrInlineDv = damaged.replace("=", " ")), invalid)
    refusal(new Path("/t"), example.copy(pathOrInlineDv = damaged.drop(1)), invalid)
    refusal(new Path("/t"), example.copy(pathOrInlineDv = "0" + damaged.drop(1)), unsupported)
    val zeroed = damaged.dropRight(15) + "0" * 15
    refusal(new Path("/t"), example.copy(pathOrInlineDv = zeroed), corrupt)
  }

  directory.test("the bytes of a file are those of the protocol, computed by hand") { table =>
    val bytes = ByteBuffer
      .allocate(1 + 4 + 44 + 4)
      .put(1: Byte)
      .putInt(44)
      .put(current.toArray)
      .putInt(crc(current.toArray))
    val writer = store.newWriter(tablePath(table))
    val descriptor = writer.add(vector(Seq(3L, 4L, 7L, 11L, 18L, 29L)))
    writer.close()
    assertEquals(descriptor.offset, Some(1))
    assertEquals(Files.readAllBytes(local(table, descriptor)).toSeq, bytes.array().toSeq)
  }

  directory.test("storage type p: a file at a URI-encoded absolute path is read") { table =>
    val first = written(table).head
    val elsewhere = Files.createDirectory(table.resolve("a b%"))
    val moved = elsewhere.resolve("vector.bin")
    Files.copy(local(table, first), moved)
    val descriptor = first.copy(storageType = "p", pathOrInlineDv = moved.toUri.toString)
    assert(descriptor.pathOrInlineDv.contains("a%20b%25"))
    assertEquals(rowsOf(store.read(new Path("/t"), dataFile, descriptor)), Seq(1L, 9L))
  }

  directory.test("an absent offset is that of the first vector") { table =>
    val first = written(table).head.copy(offset = None)
    assertEquals(rowsOf(store.read(tablePath(table), dataFile, first)), Seq(1L, 9L))
  }

  directory.test("a missing file is an error that names it") { table =>
    written(table).foreach { descriptor =>
      Files.deleteIfExists(local(table, descriptor))
      val error = refusal(tablePath(table), descriptor, "DELTAIC_DELETION_VECTOR_FILE_MISSING")
      assert(error.parameters("location").endsWith(".bin"))
    }
  }

  test("an unreachable file system is reported as a failed read") {
    val descriptor = DeletionVectorDescriptor("p", "nosuchfs://host/vector.bin", Some(1), 34, 1)
    val error = refusal(new Path("/t"), descriptor, "DELTAIC_DELETION_VECTOR_READ_FAILED")
    assert(error.parameters("reason").contains("nosuchfs"))
  }

  directory.test("an unknown file version is an error for every affected vector") { table =>
    val descriptors = written(table)
    val file = local(table, descriptors.head)
    val bytes = Files.readAllBytes(file)
    bytes(0) = 2
    bytes(bytes.length - 1) = (bytes.last ^ 1).toByte
    overwrite(file, bytes)
    Seq(descriptors.head, descriptors(1), descriptors.last).foreach { descriptor =>
      val error = refusal(tablePath(table), descriptor, unsupported)
      assert(error.parameters("reason").contains("is 2, not 1"), error.parameters)
    }
  }

  directory.test("every damaged byte of a vector, its size or its checksum is an error") { table =>
    val descriptors = written(table)
    val file = local(table, descriptors.head)
    val intact = Files.readAllBytes(file)
    Seq(descriptors.head, descriptors.last).foreach { descriptor =>
      val start = descriptor.offset.get
      (start until start + 4 + descriptor.sizeBytes + 4).foreach { at =>
        val bytes = intact.clone()
        bytes(at) = (bytes(at) ^ 0x10).toByte
        overwrite(file, bytes)
        val reason = refusal(tablePath(table), descriptor, corrupt).parameters("reason")
        assert(reason.contains(if (at < start + 4) "bytes" else "checksum"), reason)
      }
    }
  }

  // Protocol: deletion-vector-format-1, dv-deletion-vector-format-1
  directory.test("an unknown magic number with a valid checksum is not damage") { table =>
    val descriptor = written(table).head
    val file = local(table, descriptor)
    val bytes = Files.readAllBytes(file)
    bytes(5) = (bytes(5) + 1).toByte
    val checksum = crc(bytes.slice(5, 5 + descriptor.sizeBytes))
    ByteBuffer.wrap(bytes).putInt(5 + descriptor.sizeBytes, checksum)
    overwrite(file, bytes)
    refusal(tablePath(table), descriptor, unsupported)
  }

  directory.test("a file that is truncated anywhere is an error") { table =>
    val descriptor = written(table).head
    val file = local(table, descriptor)
    val intact = Files.readAllBytes(file)
    (0 until 1 + 4 + descriptor.sizeBytes + 4).foreach { length =>
      overwrite(file, intact.take(length))
      refusal(tablePath(table), descriptor, corrupt)
    }
  }

  directory.test("damage that Hadoop's checksums detect is reported as damage") { table =>
    val descriptor = written(table).head
    val file = local(table, descriptor)
    val bytes = Files.readAllBytes(file)
    bytes(9) = (bytes(9) ^ 1).toByte
    Files.write(file, bytes)
    refusal(tablePath(table), descriptor, corrupt)
  }

  directory.test("descriptors that do not match the file are errors, without absurd allocations") {
    table =>
      val descriptors = written(table)
      val first = descriptors.head
      Seq(
        first.copy(sizeBytes = first.sizeBytes - 1) -> corrupt,
        first.copy(sizeBytes = first.sizeBytes + 1) -> corrupt,
        first.copy(sizeBytes = 0) -> corrupt,
        first.copy(sizeBytes = Int.MaxValue) -> corrupt,
        first.copy(offset = Some(Int.MaxValue), sizeBytes = Int.MaxValue) -> corrupt,
        first.copy(cardinality = 3) -> corrupt,
        first.copy(offset = Some(0)) -> corrupt,
        first.copy(offset = Some(2)) -> corrupt,
        first.copy(offset = Some(1000000)) -> corrupt,
        first.copy(offset = descriptors.last.offset.map(_ + 1)) -> corrupt,
        first.copy(sizeBytes = -1) -> invalid,
        first.copy(sizeBytes = Int.MinValue) -> invalid,
        first.copy(offset = Some(-1)) -> invalid,
        first.copy(storageType = "z") -> invalid,
        first.copy(pathOrInlineDv = "short") -> invalid
      ).foreach { case (descriptor, condition) =>
        refusal(tablePath(table), descriptor, condition)
      }
  }

  private def crc(bytes: Array[Byte]): Int = {
    val crc = new java.util.zip.CRC32()
    crc.update(bytes)
    crc.getValue.toInt
  }
}
