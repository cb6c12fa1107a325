package io.deltaic.spark.scan.deletionvectors

import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{Callable, CountDownLatch, CyclicBarrier, Executors, TimeUnit}

import scala.util.{Failure, Success, Try}

import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.dv.DeletionVector
import io.deltaic.spark.scan.deletionvectors.DeletionVectorCache.Key

class DeletionVectorCacheSuite extends munit.FunSuite {

  private val bytes = 1L << 20

  private def key(name: String): Key = Key("/t", UTF8String.fromString(name))

  private def vectorOf(key: Key): DeletionVector = DeletionVector.of(key.constant.numBytes.toLong)

  /** Counts how often each vector is loaded. */
  private final class Loader(loadMs: Long = 0) {
    val loads = new AtomicInteger
    val keys = new java.util.concurrent.ConcurrentLinkedQueue[Key]
    def load(wanted: Seq[Key]): Seq[Try[DeletionVector]] = {
      loads.incrementAndGet()
      wanted.foreach(keys.add)
      Thread.sleep(loadMs)
      wanted.map(k => Success(vectorOf(k)))
    }
  }

  private def inThreads(count: Int)(action: Int => Unit): Seq[Try[Unit]] = {
    val pool = Executors.newFixedThreadPool(count)
    val together = new CyclicBarrier(count)
    try {
      val started = (0 until count).map { i =>
        pool.submit(new Callable[Unit] {
          override def call(): Unit = {
            together.await()
            action(i)
          }
        })
      }
      started.map(f => Try(f.get(60, TimeUnit.SECONDS)))
    } finally pool.shutdownNow(): Unit
  }

  test("tasks that request the same vector concurrently load it once") {
    val cache = new DeletionVectorCache(bytes)
    val loader = new Loader(loadMs = 50)
    val answers =
      inThreads(16)(_ => assertEquals(cache.get(key("a"))(loader.load), vectorOf(key("a"))))
    answers.foreach(_.get)
    assertEquals(loader.loads.get, 1)
    cache.get(key("a"))(loader.load)
    assertEquals(loader.loads.get, 1)
  }

  test("tasks whose files overlap load each vector once between them") {
    val cache = new DeletionVectorCache(bytes)
    val loader = new Loader(loadMs = 20)
    val all = (1 to 40).map(i => key("v" * i))
    inThreads(8) { i =>
      val mine = all.slice(i * 3, i * 3 + 19)
      cache.prefetch(mine)(loader.load)
      mine.foreach(k => assertEquals(cache.get(k)(loader.load), vectorOf(k)))
    }.foreach(_.get)
    assertEquals(loader.keys.size, all.size)
  }

  test("vectors are prefetched together, except those already cached") {
    val cache = new DeletionVectorCache(bytes)
    val loader = new Loader
    cache.get(key("b"))(loader.load)
    cache.prefetch(Seq("a", "b", "c", "a").map(key))(loader.load)
    assertEquals(loader.keys.toArray.toSeq, Seq[AnyRef](key("b"), key("a"), key("c")))
    assertEquals(loader.loads.get, 2)
  }

  test(
    "a vector that cannot be loaded fails who wants it, not who prefetches it, and may be retried"
  ) {
    val cache = new DeletionVectorCache(bytes)
    def broken(keys: Seq[Key]): Seq[Try[DeletionVector]] =
      keys.map(k => Failure(new IllegalStateException(k.constant.toString)))
    cache.prefetch(Seq(key("a"), key("b")))(broken)
    val error = intercept[IllegalStateException](cache.get(key("a"))(broken))
    assertEquals(error.getMessage, "a")
    assertEquals(cache.get(key("a"))(new Loader().load), vectorOf(key("a")))
  }

  test("a task that waited for a killed task loads the vector itself") {
    val cache = new DeletionVectorCache(bytes)
    val began = new CountDownLatch(1)
    val first = new Thread(() =>
      Try(cache.get(key("a")) { _ =>
        began.countDown()
        Thread.sleep(60000)
        Nil
      }): Unit
    )
    first.start()
    began.await()
    val loader = new Loader
    val second = Executors.newSingleThreadExecutor()
    try {
      val answer = second.submit(new Callable[DeletionVector] {
        override def call(): DeletionVector = cache.get(key("a"))(loader.load)
      })
      Thread.sleep(100)
      first.interrupt()
      assertEquals(answer.get(60, TimeUnit.SECONDS), vectorOf(key("a")))
    } finally second.shutdownNow(): Unit
    assertEquals(loader.loads.get, 1)
  }

  test("a vector of half of the cache is loaded once") {
    val large = key("large")
    val vector = vectorOf(large)
    val cache = new DeletionVectorCache(2 * (vector.memoryBytes + large.constant.numBytes))
    val loader = new Loader
    (1 to 2).foreach(_ => assertEquals(cache.get(large)(loader.load), vector))
    assertEquals(loader.loads.get, 1)
  }

  test("a vector that is larger than the cache is still returned") {
    val cache = new DeletionVectorCache(1L)
    val loader = new Loader
    (1 to 2).foreach(_ => assertEquals(cache.get(key("a"))(loader.load), vectorOf(key("a"))))
    assertEquals(loader.loads.get, 2)
  }
}
