package io.deltaic.faults

import java.io.IOException
import java.nio.file.{Files, Paths}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.matching.Regex

/**
 * Injects a fault into this process: at the n-th call of an operation on a matching path. It is inactive until it is
 * armed. The file systems of this package check it before each call; production code does not use it.
 */
object Faults {

  private final class Armed(operation: String, path: Regex, nth: Int, val effect: String) {
    private val calls = new AtomicInteger
    val strikes = new AtomicInteger

    def strikesAt(called: String, at: String): Boolean =
      called.matches(operation) && path.findFirstIn(at).isDefined && {
        val call = calls.incrementAndGet()
        val due = if (lasts) call >= nth else call == nth
        if (due) {
          strikes.incrementAndGet()
          meanwhile()
        }
        due
      }

    /** A full disk stays full. */
    private def lasts: Boolean = effect == "full"
  }

  @volatile private var armed = Option.empty[Armed]

  /** An action of other writers right before the fault. */
  @volatile var meanwhile: () => Unit = () => ()

  /**
   * @param operation a regular expression for `create`, `write`, `force`, `close`, `link`, `rename`, `move`, `delete`,
   *   `mkdir`, `list`, `open` or `status`
   * @param path a regular expression that is searched in the path
   * @param nth counts from 1
   * @param effect `kill before`, `kill after`, `fail before`, `fail after`, `lie`, `full`, or `stall ` and the path of a
   *   file for whose appearance the call waits, once it has made one of that name and `.reached`
   */
  def arm(operation: String, path: String, nth: Int, effect: String): Unit =
    armed = Some(new Armed(operation, path.r, nth, effect))

  /** @return how often the fault has occurred */
  def disarm(): Int = {
    val strikes = armed.fold(0)(_.strikes.get)
    armed = None
    meanwhile = () => ()
    strikes
  }

  /** How often the fault has occurred so far. */
  def strikes: Int = armed.fold(0)(_.strikes.get)

  /** @param lie the result to return instead of running the operation */
  private[faults] def around[A](operation: String, path: String, lie: => A)(call: => A): A =
    armed.filter(_.strikesAt(operation, path)).map(_.effect) match {
      case None => call
      case Some("kill before") => die()
      case Some("kill after") =>
        call
        die()
      case Some("fail before") => throw new IOException(s"a fault of $operation, before it")
      case Some("fail after") =>
        call
        throw new IOException(s"a fault of $operation, after it")
      case Some("lie") => lie
      case Some("full") => throw new IOException("No space left on device")
      case Some(stall) if stall.startsWith("stall ") =>
        waitFor(stall.stripPrefix("stall "))
        call
      case Some(other) => throw new IllegalArgumentException(other)
    }

  /** For a call whose result cannot be faked. */
  def at[A](operation: String, path: String)(call: => A): A = around(operation, path)(call)

  private[faults] def around[A](operation: String, path: String)(call: => A): A =
    around[A](operation, path, throw new IllegalArgumentException(s"$operation cannot lie"))(call)

  /** Kills the process as a scheduler or the OOM killer would, without notice. */
  private def die(): Nothing = {
    new ProcessBuilder("kill", "-KILL", ProcessHandle.current.pid.toString).start()
    Thread.sleep(60000)
    throw new IllegalStateException("still alive")
  }

  private def waitFor(file: String): Unit = {
    Files.createFile(Paths.get(file + ".reached"))
    val deadline = System.nanoTime + 60000000000L
    while (!Files.exists(Paths.get(file)) && System.nanoTime < deadline) Thread.sleep(5)
  }
}
