package io.deltaic.spark.scan

import java.io.IOException
import java.nio.ByteBuffer

import com.github.luben.zstd.ZstdDecompressCtx
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.compression.CompressionCodecFactory
import org.apache.parquet.compression.CompressionCodecFactory.{
  BytesInputCompressor,
  BytesInputDecompressor
}
import org.apache.parquet.hadoop.CodecFactory
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.xerial.snappy.Snappy

/**
 * Decompresses the pages of one open Parquet file.
 *
 * Parquet's own decompressors are streams of Hadoop's, which copy a page into a buffer of theirs and out of
 * another. Those of Snappy and Zstandard here make the page's bytes of the file's, in one call of the
 * same library; other codecs stay with Parquet. Not thread safe: one belongs to one reader.
 */
private[spark] final class PageDecompressors(configuration: Configuration)
    extends CompressionCodecFactory {

  private val parquets = new CodecFactory(configuration, 0)
  private lazy val snappy = new SnappyPages
  private var zstandard: Option[ZstandardPages] = None

  override def getDecompressor(codec: CompressionCodecName): BytesInputDecompressor = codec match {
    case CompressionCodecName.SNAPPY => snappy
    case CompressionCodecName.ZSTD =>
      zstandard.getOrElse {
        val made = new ZstandardPages
        zstandard = Some(made)
        made
      }
    case other => parquets.getDecompressor(other)
  }

  override def getCompressor(codec: CompressionCodecName): BytesInputCompressor =
    parquets.getCompressor(codec)

  override def release(): Unit = {
    zstandard.foreach(_.release())
    zstandard = None
    parquets.release()
  }
}

/** Decompresses a page from one array into another. */
private[scan] abstract class WholePages extends BytesInputDecompressor {

  /** Fills `page` with what `length` bytes at `start` of `compressed` hold, or fails. */
  @throws[IOException]
  protected def fill(page: Array[Byte], compressed: Array[Byte], start: Int, length: Int): Unit

  final override def decompress(compressed: BytesInput, pageBytes: Int): BytesInput =
    BytesInput.from(page(compressed.toInputStream.slice(compressed.size.toInt), pageBytes))

  final override def decompress(
      compressed: ByteBuffer,
      compressedBytes: Int,
      page: ByteBuffer,
      pageBytes: Int
  ): Unit = {
    val input = compressed.slice()
    input.limit(compressedBytes)
    page.put(this.page(input, pageBytes))
    compressed.position(compressed.position() + compressedBytes): Unit
  }

  private def page(compressed: ByteBuffer, pageBytes: Int): Array[Byte] = {
    val page = new Array[Byte](pageBytes)
    // A page without values need not have any bytes, not even those that say so to the codec.
    if (pageBytes > 0 || compressed.hasRemaining)
      if (compressed.hasArray) {
        val start = compressed.arrayOffset + compressed.position()
        fill(page, compressed.array, start, compressed.remaining)
      } else {
        val copy = new Array[Byte](compressed.remaining)
        compressed.duplicate().get(copy)
        fill(page, copy, 0, copy.length)
      }
    page
  }

  /** The page's header and what is compressed must agree, or memory behind the page would be written. */
  protected def checkSize(page: Array[Byte], bytes: Long): Unit =
    if (bytes != page.length)
      throw new IOException(
        s"A page decompresses to $bytes bytes, and to ${page.length} by its header."
      )
}

private[scan] final class SnappyPages extends WholePages {

  override protected def fill(
      page: Array[Byte],
      compressed: Array[Byte],
      start: Int,
      length: Int
  ): Unit = {
    checkSize(page, Snappy.uncompressedLength(compressed, start, length).toLong)
    Snappy.uncompress(compressed, start, length, page, 0): Unit
  }

  override def release(): Unit = ()
}

private[scan] final class ZstandardPages extends WholePages {

  private val context = new ZstdDecompressCtx

  override protected def fill(
      page: Array[Byte],
      compressed: Array[Byte],
      start: Int,
      length: Int
  ): Unit =
    checkSize(
      page,
      context.decompressByteArray(page, 0, page.length, compressed, start, length).toLong
    )

  override def release(): Unit = context.close()
}
