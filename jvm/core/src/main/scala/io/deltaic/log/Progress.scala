package io.deltaic.log

import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import org.slf4j.LoggerFactory

/**
 * How much of a long phase of a command is done. While the phase runs, this is reported every few seconds, and once more
 * at its end. A phase that is shorter reports nothing.
 *
 * @param phase the operation, its phase and the table
 * @param total how much there is to do; none if that is not known
 * @param unit what is counted, such as `files`
 */
final class Progress private (
    phase: String,
    total: Option[Long],
    unit: String,
    intervalMs: Long,
    report: String => Unit
) {
  private val done = new AtomicLong
  @volatile private var isReported = false

  private val startNs = System.nanoTime

  private val timer = Progress.timer.scheduleAtFixedRate(
    () => reportNow(),
    intervalMs.max(1),
    intervalMs.max(1),
    TimeUnit.MILLISECONDS
  )

  /** May be called from any thread. */
  def add(count: Long): Unit = { done.addAndGet(count); () }

  private def reportNow(): Unit = {
    isReported = true
    report(s"$phase: ${done.get}${total.fold("")(all => s" of $all")} $unit")
  }

  private def end(): Unit = {
    timer.cancel(false)
    val elapsedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime - startNs)
    if (isReported || elapsedMs >= intervalMs) reportNow()
  }
}

object Progress {
  private val logger = LoggerFactory.getLogger(classOf[Progress])

  /** Tests set it to 0, and each phase reports its end. */
  @volatile private[deltaic] var reportEveryMs = 5000L

  private lazy val timer: ScheduledExecutorService =
    Executors.newSingleThreadScheduledExecutor(task => DaemonThread(task, "deltaic-progress"))

  /** Runs a phase, whose progress is logged. */
  def of[A](phase: String, total: Option[Long], unit: String)(body: Progress => A): A =
    reported(phase, total, unit, reportEveryMs, logger.info(_: String))(body)

  private[log] def reported[A](
      phase: String,
      total: Option[Long],
      unit: String,
      intervalMs: Long,
      report: String => Unit
  )(body: Progress => A): A = {
    val progress = new Progress(phase, total, unit, intervalMs, report)
    try body(progress)
    finally progress.end()
  }
}
