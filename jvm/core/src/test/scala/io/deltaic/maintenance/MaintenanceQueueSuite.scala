package io.deltaic.maintenance

import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.hadoop.fs.Path

class MaintenanceQueueSuite extends munit.FunSuite {
  private val (large, dropped) = (new Path("file:/large"), new Path("file:/dropped"))

  test("dropping a table cancels its pending tasks, without waiting for other tables") {
    val (began, ends) = (new CountDownLatch(1), new CountDownLatch(1))
    val done = new AtomicInteger
    MaintenanceQueue.submit(large) { () =>
      began.countDown()
      ends.await(60, TimeUnit.SECONDS): Unit
    }
    assert(began.await(60, TimeUnit.SECONDS))
    (1 to 3).foreach(_ => MaintenanceQueue.submit(dropped)(() => done.incrementAndGet(): Unit))
    MaintenanceQueue.submit(large)(() => done.addAndGet(10): Unit)
    try assert(MaintenanceQueue.cancel(dropped, timeoutMs = 60000))
    finally ends.countDown()
    assert(MaintenanceQueue.await(60000))
    assertEquals(done.get, 10)
  }

  test("dropping a table waits for its running task, up to the timeout") {
    val (began, ends) = (new CountDownLatch(1), new CountDownLatch(1))
    MaintenanceQueue.submit(dropped) { () =>
      began.countDown()
      ends.await(60, TimeUnit.SECONDS): Unit
    }
    assert(began.await(60, TimeUnit.SECONDS))
    try assert(!MaintenanceQueue.cancel(dropped, timeoutMs = 10))
    finally ends.countDown()
    assert(MaintenanceQueue.cancel(dropped, timeoutMs = 60000))
    assert(MaintenanceQueue.await(60000))
  }
}
