package io.deltaic.spark.scan.vectorized

import java.io.IOException
import java.nio.ByteBuffer

import scala.util.Random

import munit.FunSuite
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputDecompressor
import org.apache.parquet.hadoop.CodecFactory
import org.apache.parquet.hadoop.metadata.CompressionCodecName

/** Pages that Parquet's own codecs have compressed, in all the ways in which a file's bytes may be stored in memory. */
class PageDecompressorsSuite extends FunSuite {
  private val configuration = new Configuration()
  private val parquet = new CodecFactory(configuration, 64)
  private val ours = Seq(CompressionCodecName.SNAPPY, CompressionCodecName.ZSTD)
  private val others =
    Seq(CompressionCodecName.UNCOMPRESSED, CompressionCodecName.GZIP, CompressionCodecName.LZ4_RAW)

  override def afterAll(): Unit = parquet.release()

  private val pages: Seq[Array[Byte]] = {
    val random = new Random(1)
    val noise = new Array[Byte](70000)
    random.nextBytes(noise)
    Seq(Array[Byte](7), noise, Array.tabulate(200000)(i => (i / 100).toByte))
  }

  private def compressed(codec: CompressionCodecName, page: Array[Byte]): Array[Byte] =
    content(parquet.getCompressor(codec).compress(BytesInput.from(page, 0, page.length)))

  private def content(bytes: BytesInput): Array[Byte] = bytes.toInputStream.readAllBytes()

  private def withDecompressor(codec: CompressionCodecName)(
      body: BytesInputDecompressor => Unit
  ): Unit = {
    val decompressors = new PageDecompressors(configuration)
    try body(decompressors.getDecompressor(codec))
    finally decompressors.release()
  }

  /** The bytes in the midst of an array, in a buffer outside of the heap, and over several buffers. */
  private def laidOut(bytes: Array[Byte]): Seq[BytesInput] = {
    val within = Array.fill[Byte](3)(9) ++ bytes ++ Array.fill[Byte](5)(9)
    val direct = ByteBuffer.allocateDirect(bytes.length)
    direct.put(bytes).flip()
    val (first, second) = bytes.splitAt(bytes.length / 2)
    Seq(
      BytesInput.from(bytes, 0, bytes.length),
      BytesInput.from(ByteBuffer.wrap(within, 3, bytes.length).slice()),
      BytesInput.from(direct),
      BytesInput.from(ByteBuffer.wrap(first), ByteBuffer.wrap(second))
    )
  }

  for (codec <- ours ++ others)
    test(s"$codec: pages are those that were compressed") {
      withDecompressor(codec) { decompressor =>
        for (page <- pages; bytes <- laidOut(compressed(codec, page)))
          assert(content(decompressor.decompress(bytes, page.length)).sameElements(page))
      }
    }

  for (codec <- ours) {
    test(s"$codec: from one buffer into another") {
      withDecompressor(codec) { decompressor =>
        for (page <- pages) {
          val bytes = compressed(codec, page)
          val input = ByteBuffer.wrap(bytes ++ Array[Byte](1, 2, 3))
          val output = ByteBuffer.allocateDirect(page.length + 4)
          output.put(42.toByte)
          decompressor.decompress(input, bytes.length, output, page.length)
          assertEquals(input.remaining, 3)
          assertEquals(output.position(), page.length + 1)
          val read = new Array[Byte](page.length)
          output.flip().position(1).get(read)
          assert(read.sameElements(page))
        }
      }
    }

    test(s"$codec: a page without values may have no bytes") {
      withDecompressor(codec) { decompressor =>
        for (bytes <- Seq(Array.empty[Byte], compressed(codec, Array.empty)))
          assertEquals(decompressor.decompress(BytesInput.from(bytes, 0, bytes.length), 0).size, 0L)
      }
    }

    test(s"$codec: a page that is longer or shorter than specified in its header is rejected") {
      withDecompressor(codec) { decompressor =>
        for (page <- pages; bytes = compressed(codec, page); wrong <- Seq(-1, 1))
          refused(decompressor, bytes, page.length + wrong)
      }
    }

    test(s"$codec: damaged bytes are rejected, or give a page of the right length") {
      val random = new Random(2)
      withDecompressor(codec) { decompressor =>
        for (page <- pages; bytes = compressed(codec, page); _ <- 1 to 50) {
          val damaged = bytes.clone()
          damaged(random.nextInt(bytes.length)) = random.nextInt().toByte
          try {
            val read =
              decompressor.decompress(BytesInput.from(damaged, 0, damaged.length), page.length)
            assertEquals(read.size, page.length.toLong)
          } catch { case _: IOException => () }
        }
        refused(decompressor, pages(1), 1000)
        for (page <- pages.tail; bytes = compressed(codec, page))
          refused(decompressor, bytes.take(bytes.length / 2), page.length)
      }
    }
  }

  test("ZSTD: a page may be several frames") {
    withDecompressor(CompressionCodecName.ZSTD) { decompressor =>
      val frames = pages.map(compressed(CompressionCodecName.ZSTD, _)).flatten.toArray
      val read =
        decompressor.decompress(BytesInput.from(frames, 0, frames.length), pages.map(_.length).sum)
      assert(content(read).sameElements(pages.flatten))
    }
  }

  private def refused(
      decompressor: BytesInputDecompressor,
      bytes: Array[Byte],
      pageBytes: Int
  ): Unit =
    try {
      decompressor.decompress(BytesInput.from(bytes, 0, bytes.length), pageBytes)
      fail(s"${bytes.length} bytes made a page of $pageBytes")
    } catch { case _: IOException => () }
}
