package io.deltaic.upkeep

import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.hadoop.fs.Path

class UpkeepQueueSuite extends munit.FunSuite {
  private val (large, dropped) = (new Path("file:/large"), new Path("file:/dropped"))

  test("a table that is dropped gives up what has not begun, and does not wait for other tables") {
    val (began, ends) = (new CountDownLatch(1), new CountDownLatch(1))
    val done = new AtomicInteger
    UpkeepQueue.submit(large) { () =>
      began.countDown()
      ends.await(60, TimeUnit.SECONDS): Unit
    }
    assert(began.await(60, TimeUnit.SECONDS))
    (1 to 3).foreach(_ => UpkeepQueue.submit(dropped)(() => done.incrementAndGet(): Unit))
    UpkeepQueue.submit(large)(() => done.addAndGet(10): Unit)
    try assert(UpkeepQueue.giveUp(dropped, timeoutMs = 60000))
    finally ends.countDown()
    assert(UpkeepQueue.await(60000))
    assertEquals(done.get, 10)
  }

  test("what has begun for a table is waited for, as long as the limit allows") {
    val (began, ends) = (new CountDownLatch(1), new CountDownLatch(1))
    UpkeepQueue.submit(dropped) { () =>
      began.countDown()
      ends.await(60, TimeUnit.SECONDS): Unit
    }
    assert(began.await(60, TimeUnit.SECONDS))
    try assert(!UpkeepQueue.giveUp(dropped, timeoutMs = 10))
    finally ends.countDown()
    assert(UpkeepQueue.giveUp(dropped, timeoutMs = 60000))
    assert(UpkeepQueue.await(60000))
  }
}
