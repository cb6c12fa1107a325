package io.deltaic.spark.scan.vectorized

import java.io.IOException
import java.nio.ByteBuffer

import com.github.luben.zstd.{ZstdDecompressCtx, ZstdException}
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
 * Parquet's own decompressors are streams of Hadoop's, which copy a page into one buffer and out of
 * another. For Snappy and Zstandard, this class decompresses from one array into another in one
 * call of the same library; other codecs use Parquet's decompressors. Not thread safe: one belongs
 * to one reader.
 */
private[scan] final class PageDecompressors(configuration: Configuration)
    extends CompressionCodecFactory {

  private val parquet = new CodecFactory(configuration, 0)
  private var zstandard: Option[ZstandardPages] = None

  override def getDecompressor(codec: CompressionCodecName): BytesInputDecompressor = codec match {
    case CompressionCodecName.SNAPPY => SnappyPages
    case CompressionCodecName.ZSTD =>
      zstandard.getOrElse {
        val made = new ZstandardPages
        zstandard = Some(made)
        made
      }
    case other => parquet.getDecompressor(other)
  }

  override def getCompressor(codec: CompressionCodecName): BytesInputCompressor =
    parquet.getCompressor(codec)

  override def release(): Unit = {
    zstandard.foreach(_.release())
    zstandard = None
    parquet.release()
  }
}

/** Decompresses a page from one array into another. */
private[scan] abstract class WholePages extends BytesInputDecompressor {

  /** Decompresses `length` bytes of `compressed`, from `start` on, into `page`, or fails. */
  @throws[IOException]
  protected def fill(page: Array[Byte], compressed: Array[Byte], start: Int, length: Int): Unit

  final override def decompress(compressed: BytesInput, pageBytes: Int): BytesInput =
    BytesInput.from(decompressed(compressed.toInputStream.slice(compressed.size.toInt), pageBytes))

  final override def decompress(
      compressed: ByteBuffer,
      compressedBytes: Int,
      page: ByteBuffer,
      pageBytes: Int
  ): Unit = {
    val input = compressed.slice()
    input.limit(compressedBytes)
    page.put(decompressed(input, pageBytes))
    compressed.position(compressed.position() + compressedBytes): Unit
  }

  private def decompressed(input: ByteBuffer, pageBytes: Int): Array[Byte] = {
    val page = new Array[Byte](pageBytes)
    // A page without values need not have any bytes, not even those that say so to the codec.
    if (pageBytes > 0 || input.hasRemaining)
      if (input.hasArray)
        fill(page, input.array, input.arrayOffset + input.position(), input.remaining)
      else {
        val copy = new Array[Byte](input.remaining)
        input.duplicate().get(copy)
        fill(page, copy, 0, copy.length)
      }
    page
  }

  protected def checkSize(page: Array[Byte], bytes: Int): Unit =
    if (bytes != page.length)
      throw new IOException(
        s"A page decompresses to $bytes bytes, and to ${page.length} by its header."
      )
}

private[scan] object SnappyPages extends WholePages {

  /** Snappy writes as many bytes as the compressed data specifies, whatever the length of the array. */
  override protected def fill(
      page: Array[Byte],
      compressed: Array[Byte],
      start: Int,
      length: Int
  ): Unit = {
    checkSize(page, Snappy.uncompressedLength(compressed, start, length))
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
  ): Unit = {
    val bytes =
      try context.decompressByteArray(page, 0, page.length, compressed, start, length)
      catch { case e: ZstdException => throw new IOException(e.getMessage, e) }
    checkSize(page, bytes)
  }

  override def release(): Unit = context.close()
}
