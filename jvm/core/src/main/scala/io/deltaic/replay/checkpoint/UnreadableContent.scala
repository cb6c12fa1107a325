package io.deltaic.replay.checkpoint

import java.io.{EOFException, FileNotFoundException, IOException}
import java.util.zip.ZipException

import scala.util.control.{ControlThrowable, NonFatal}

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.ChecksumException

/**
 * Distinguishes a missing or damaged file, which stays unreadable, from a failed read, which may succeed when it is
 * repeated. Only the former makes a checkpoint unreadable.
 */
private[deltaic] object UnreadableContent {

  /** The result, or the reason why the file is permanently unreadable. Any other exception is thrown. */
  def orElse[A](read: => A): Either[Throwable, A] =
    try Right(read)
    catch {
      case e: ConsumerFailure => throw e.failure
      case NonFatal(e) if isFinal(e) => Left(e)
    }

  /** Runs a consumer of the content while it is read: its exceptions are not errors of the file. */
  def rethrowingConsumerErrors[A](visit: => A): A =
    try visit
    catch { case NonFatal(e) => throw new ConsumerFailure(e) }

  private final class ConsumerFailure(val failure: Throwable) extends ControlThrowable

  /**
   * Damaged bytes may make a decoder throw almost any exception, so the test is that no file access failed. Parquet may
   * have wrapped such a failure in its own exception.
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
      // Parquet reports an invalid header with a plain IOException.
      Option(other.getMessage).exists(_.startsWith("can not read class org.apache.parquet.format."))
  }

  private val Codecs = Seq("org.xerial.snappy.", "com.github.luben.zstd.")

  /** A longer chain is a cycle. */
  private val CausesFollowed = 50
}

/** A row of a checkpoint that violates the protocol. */
private[replay] final class MalformedRow(message: String) extends IOException(message)
