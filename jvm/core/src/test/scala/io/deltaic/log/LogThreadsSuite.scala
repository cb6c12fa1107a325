package io.deltaic.log

import java.net.URLClassLoader
import java.security.PrivilegedAction
import java.util.concurrent.{CountDownLatch, CyclicBarrier, TimeUnit}

import org.apache.hadoop.security.UserGroupInformation

class LogThreadsSuite extends munit.FunSuite {

  test("two items are read in parallel") {
    val both = new CyclicBarrier(2)
    val results = LogThreads.mapInOrder(Iterator(1, 2)) { item =>
      both.await(10, TimeUnit.SECONDS)
      item
    }
    assertEquals(results.toList, List(1, 2))
  }

  test("results are in the order of the items, whichever is read first") {
    val second = new CountDownLatch(1)
    val results = LogThreads.mapInOrder((0 until 100).iterator) { item =>
      if (item == 0) assert(second.await(10, TimeUnit.SECONDS))
      else second.countDown()
      item
    }
    assertEquals(results.toList, (0 until 100).toList)
  }

  test("at most two items per thread are read ahead of the results") {
    val count = 20 * LogThreads.count
    var taken = 0
    val items = Iterator.tabulate(count) { item =>
      taken += 1
      item
    }
    val results = LogThreads.mapInOrder(items)(identity)
    assert(results.hasNext)
    assertEquals(taken, 0)
    results.zipWithIndex.foreach { case (_, i) =>
      assertEquals(taken, math.min(count, i + 1 + 2 * LogThreads.count))
    }
    assertEquals(taken, count)
  }

  test("the exception of an item is thrown unchanged, after the earlier results") {
    val failure = new java.io.IOException("item 1")
    val results = LogThreads.mapInOrder((0 until 10).iterator) { item =>
      if (item == 1) throw failure
      item
    }
    assertEquals(results.next(), 0)
    assert(intercept[java.io.IOException](results.next()) eq failure)
  }

  test("a shared thread inherits nothing from the thread that created it") {
    val session = new InheritableThreadLocal[String]
    session.set("of the first user")
    val maker = Thread.currentThread
    val loader = maker.getContextClassLoader
    var inherited: (String, ClassLoader) = null
    try {
      maker.setContextClassLoader(new URLClassLoader(Array.empty, loader))
      val made = DaemonThread(
        () => inherited = (session.get, Thread.currentThread.getContextClassLoader),
        "test"
      )
      made.start()
      made.join()
    } finally {
      maker.setContextClassLoader(loader)
      session.remove()
    }
    assertEquals(inherited, (null, DaemonThread.getClass.getClassLoader))
  }

  test("items are read as the calling user") {
    val names: PrivilegedAction[Seq[String]] = () =>
      LogThreads
        .mapInOrder((0 until 20).iterator)(_ => UserGroupInformation.getCurrentUser.getUserName)
        .toSeq
    Seq("ada", "grace").foreach { user =>
      assertEquals(UserGroupInformation.createRemoteUser(user).doAs(names), Seq.fill(20)(user))
    }
  }
}
