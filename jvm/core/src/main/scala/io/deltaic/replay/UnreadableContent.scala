package io.deltaic.replay

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.zip.ZipException

import scala.util.control.{ControlThrowable, NonFatal}

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.ChecksumException

/**
 * Tells a file that is missing or damaged, which stays so however often it is read, from a read that failed, which may
 * succeed when it is repeated: only the former may cost a checkpoint its good name.
 */
private[deltaic] object UnreadableContent {

  /** What was read, or why the file can never be read. Any other failure is thrown. */
  def orElse[A](read: => A): Either[Throwable, A] =
    try Right(read)
    catch {
      case e: OfVisitor => throw e.failure
      case NonFatal(e) if isFinal(e) => Left(e)
    }

  /** For what is done with the content while it is read: its failures are not the file's. */
  def notIn[A](visit: => A): A =
    try visit
    catch { case NonFatal(e) => throw new OfVisitor(e) }

  private final class OfVisitor(val failure: Throwable) extends ControlThrowable

  /**
   * Damaged bytes may make a decoder throw almost anything, so what counts is that no access to the file failed, which
   * Parquet may have wrapped in an exception of its own.
   */
  private def isFinal(e: Throwable): Boolean = {
    val failures = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(CausesFollowed).toSeq
    failures.exists(_.isInstanceOf[FileNotFoundException]) ||
    failures.collect { case io: IOException => io }.forall(isOfContent)
  }

  private def isOfContent(e: IOException): Boolean = e match {
    case _: EOFException | _: ZipException | _: ChecksumException | _: JsonProcessingException |
        _: MalformedRow => true
    case other =>
      Codecs.exists(other.getClass.getName.startsWith) ||
      // Of a header that is none, Parquet's format says so in a plain exception.
      Option(other.getMessage).exists(_.startsWith("can not read class org.apache.parquet.format."))
  }

  private val Codecs = Seq("org.xerial.snappy.", "com.github.luben.zstd.")

  /** No chain is longer unless it is a circle. */
  private val CausesFollowed = 50
}

/** A row of a checkpoint that is not as the protocol wants it. */
private[replay] final class MalformedRow(message: String) extends IOException(message)
