package io.deltaic.log

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.jdk.CollectionConverters._

class ProgressSuite extends munit.FunSuite {

  private def run(total: Option[Long], intervalMs: Long)(
      body: (Progress, LinkedBlockingQueue[String]) => Unit
  ): Seq[String] = {
    val lines = new LinkedBlockingQueue[String]
    Progress.reported("VACUUM: delete files, /t", total, "files", intervalMs, lines.add(_: String)) {
      body(_, lines)
    }
    lines.asScala.toSeq
  }

  test("a long phase reports what is done while it runs, and once more at its end") {
    val lines = run(Some(10), intervalMs = 5) { (progress, lines) =>
      progress.add(3)
      val first = lines.poll(1, TimeUnit.MINUTES)
      assert(Set(0, 3).map(n => s"VACUUM: delete files, /t: $n of 10 files")(first), first)
      progress.add(7)
    }
    assertEquals(lines.last, "VACUUM: delete files, /t: 10 of 10 files")
  }

  test("a short phase reports nothing") {
    assertEquals(run(Some(10), intervalMs = 60000)((progress, _) => progress.add(10)), Nil)
  }

  test("a phase of unknown length reports what is done, and a failed one how far it came") {
    val lines = new LinkedBlockingQueue[String]
    intercept[IllegalStateException] {
      Progress.reported("VACUUM: list, /t", None, "directories", 5, lines.add(_: String)) {
        progress =>
          progress.add(4)
          lines.poll(1, TimeUnit.MINUTES)
          throw new IllegalStateException("the file system is gone")
      }
    }
    val last = lines.asScala.toSeq.last
    assertEquals(last, "VACUUM: list, /t: 4 directories")
    Thread.sleep(50) // for a report that was under way
    lines.clear()
    Thread.sleep(50)
    assertEquals(lines.size, 0)
  }
}
