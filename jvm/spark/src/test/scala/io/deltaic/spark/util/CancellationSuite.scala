package io.deltaic.spark.util

import munit.FunSuite
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeltaicThrowable

class CancellationSuite extends FunSuite {
  private def statement() = Cancellation.of("STREAMING UPDATE", new Path("/data/t"))

  test("a statement that began before everything was cancelled fails, and later ones do not") {
    val running = statement()
    running.check()
    Cancellation.cancelAll()
    val caught = intercept[Exception](running.check())
    caught match {
      case e: DeltaicThrowable =>
        assertEquals(e.condition, "DELTAIC_STATEMENT_CANCELLED")
        assertEquals(e.parameters, Map("operation" -> "STREAMING UPDATE", "table" -> "/data/t"))
      case other => fail("another error", other)
    }
    statement().check()
  }

  test("the stop of a query, which interrupts its thread, is the exception that Spark expects") {
    val running = statement()
    Thread.currentThread.interrupt()
    // MUnit does not intercept it.
    val wasStopped =
      try { running.check(); false }
      catch { case _: InterruptedException => true }
    assert(Thread.interrupted())
    assert(wasStopped)
    running.check()
  }
}
