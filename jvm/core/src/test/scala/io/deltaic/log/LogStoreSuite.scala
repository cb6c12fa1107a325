package io.deltaic.log

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.util.concurrent.{Callable, CountDownLatch, Executors}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.hdfs.MiniDFSCluster

import io.deltaic.protocol.DeltaicException

/** What [[LogStore]] promises, on every store that can write. */
abstract class WritingLogStoreSuite extends munit.FunSuite {

  protected def conf: Configuration
  protected def newDirectory(): Path

  private def commit(directory: Path, version: Long): Path =
    FileNames.commit(FileNames.logDirectory(directory), version)

  test("a file is written once, and never again") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    assertEquals(store.writeIfAbsent(path, Iterator("é", "b")), WriteOutcome.Written)
    assertEquals(store.writeIfAbsent(path, Iterator("other")), WriteOutcome.AlreadyExists)
    assertEquals(store.writeIfAbsent(path, "x".getBytes), WriteOutcome.AlreadyExists)
    assertEquals(new String(store.read(path), UTF_8), "é\nb\n")
  }

  test("a file whose writing fails does not appear, and leaves nothing behind") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    val broken = Iterator("a") ++ Iterator.continually(throw new IllegalStateException("no more"))
    intercept[IllegalStateException](store.writeIfAbsent(path, broken))
    assertEquals(store.status(path), None)
    assertEquals(store.listFrom(path.getParent, "").toList, Nil)
  }

  test("a file beside others makes no directory, and does not appear against its guard") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    def write(guard: () => Unit): WriteOutcome =
      store.writeBesideIfAbsent(path, guard)(_.write(1))
    intercept[DeltaicException](write(() => ()))
    intercept[IOException](store.makeDirectory(new Path(path.getParent, "inner")))
    assertEquals(store.status(path.getParent), None)
    store.writeIfAbsent(new Path(path.getParent, "other"), Iterator("x"))
    intercept[IllegalStateException](write(() => throw new IllegalStateException("replaced")))
    assertEquals(store.listFrom(path.getParent, "").map(_.getPath.getName).toList, List("other"))
    assertEquals(write(() => ()), WriteOutcome.Written)
    (0 until 2).foreach(_ => store.makeDirectory(new Path(path.getParent, "inner")))
    assert(store.status(new Path(path.getParent, "inner")).exists(_.isDirectory))
  }

  test("of threads that race for one version, one wins and its content stays") {
    val directory = newDirectory()
    val pool = Executors.newFixedThreadPool(8)
    try
      (0 until 20).foreach { version =>
        val path = commit(directory, version)
        val start = new CountDownLatch(1)
        val tasks = (0 until 8).map { writer =>
          pool.submit(new Callable[(Int, WriteOutcome)] {
            override def call(): (Int, WriteOutcome) = {
              start.await()
              val lines = Iterator.fill(200)(s"writer $writer")
              writer -> LogStore.forPath(path, conf).writeIfAbsent(path, lines)
            }
          })
        }
        start.countDown()
        val winners = tasks.map(_.get()).collect { case (writer, WriteOutcome.Written) => writer }
        assertEquals(winners.size, 1)
        val content = new String(LogStore.forPath(path, conf).read(path), UTF_8)
        assertEquals(content.linesIterator.toList, List.fill(200)(s"writer ${winners.head}"))
      }
    finally pool.shutdown()
    val names = LogStore
      .forPath(directory, conf)
      .listFrom(FileNames.logDirectory(directory), "")
      .map(_.getPath.getName)
      .toList
    assertEquals(names, (0 until 20).map(v => f"$v%020d.json").toList)
  }

  test("files are listed in order from a name on; a missing directory is empty") {
    val directory = newDirectory()
    val log = FileNames.logDirectory(directory)
    val store = LogStore.forPath(directory, conf)
    assertEquals(store.listFrom(log, FileNames.firstOf(0)).toList, Nil)
    Seq(2, 0, 3, 1).foreach(v => store.writeIfAbsent(commit(directory, v), Iterator(s"v$v")))
    val listed = store.listFrom(log, FileNames.firstOf(2)).toList
    assertEquals(listed.map(f => FileNames.versionOf(f)), List(2L, 3L))
    assertEquals(listed.map(_.getLen), List(3L, 3L))
    assert(listed.head.getModificationTime > 1600000000000L)
  }

  test("a missing file is reported as such") {
    val path = commit(newDirectory(), 7)
    val store = LogStore.forPath(path, conf)
    intercept[FileNotFoundException](store.read(path))
    assertEquals(store.status(path), None)
  }
}

class LocalLogStoreSuite extends WritingLogStoreSuite {
  override protected val conf = new Configuration()
  override protected def newDirectory(): Path =
    new Path(Files.createTempDirectory("log store é%").toUri)

  test("of processes that race for the same versions, one wins each and its content stays") {
    val directory = newDirectory()
    val java = Paths.get(sys.props("java.home"), "bin", "java").toString
    val processes = (0 until 3).map { writer =>
      new ProcessBuilder(
        java,
        "-Xmx256m",
        "-cp",
        sys.props("java.class.path"),
        "io.deltaic.log.RacingWriter",
        directory.toString,
        writer.toString
      ).redirectErrorStream(true).start()
    }
    val outputs = processes.map(p => new String(p.getInputStream.readAllBytes(), UTF_8))
    processes.zip(outputs).foreach { case (p, out) => assertEquals(p.waitFor(), 0, out) }
    val wins = outputs.map(_.linesIterator.filter(_.startsWith("won ")).map(_.drop(4).toLong).toSet)
    assertEquals(wins.map(_.size).sum, RacingWriter.Versions)
    assertEquals(wins.reduce(_ ++ _).size, RacingWriter.Versions)
    val store = LogStore.forPath(directory, conf)
    wins.zipWithIndex.foreach { case (versions, writer) =>
      versions.foreach { v =>
        val path = FileNames.commit(FileNames.logDirectory(directory), v)
        assertEquals(new String(store.read(path), UTF_8), s"writer $writer\n" * 50)
      }
    }
  }

  test("a write that fails before the file has its name says so, and leaves nothing") {
    val directory = Files.createTempDirectory("blocked")
    Files.writeString(directory.resolve("_delta_log"), "a file where the directory should be")
    val commit = new Path(new Path(directory.toUri), "_delta_log/00000000000000000000.json")
    val store = LogStore.forPath(commit, new Configuration())
    val e = intercept[DeltaicException](store.writeIfAbsent(commit, Iterator("x")))
    assertEquals(e.condition, "DELTAIC_LOG_WRITE_FAILED")
    assertEquals(e.parameters("file"), commit.toString)
    assertEquals(Files.list(directory).iterator.asScala.size, 1)
  }

  test("a scheme without a known way to write refuses by name, and reads") {
    val directory = Files.createTempDirectory("other")
    Files.writeString(directory.resolve("a"), "content")
    val other = new Configuration()
    other.set("fs.other.impl", classOf[OtherFileSystem].getName)
    val path = new Path(s"other://$directory/a")
    val store = LogStore.forPath(path, other)
    assertEquals(new String(store.read(path), UTF_8), "content")
    val e = intercept[DeltaicException](store.writeIfAbsent(new Path(path, "b"), Iterator("x")))
    assertEquals(e.condition, "DELTAIC_LOG_STORE_UNSUPPORTED")
    assertEquals(e.parameters("scheme"), "other")
    assertEquals(Files.list(directory).iterator.asScala.size, 1)
  }
}

/** A local file system under another name. */
class OtherFileSystem extends org.apache.hadoop.fs.RawLocalFileSystem {
  override def getUri: java.net.URI = java.net.URI.create("other:///")
  override def getScheme: String = "other"
}

/** A process that tries to write every version, in the same order as its rivals. */
object RacingWriter {
  val Versions = 60

  def main(args: Array[String]): Unit = {
    val directory = new Path(args(0))
    val store = LogStore.forPath(directory, new Configuration())
    (0 until Versions).foreach { v =>
      val path = FileNames.commit(FileNames.logDirectory(directory), v)
      val lines = Iterator.fill(50)(s"writer ${args(1)}")
      if (store.writeIfAbsent(path, lines) == WriteOutcome.Written) println(s"won $v")
      Thread.sleep(5)
    }
  }
}

/** Against a name node and a data node of real HDFS, in this process. */
class HdfsLogStoreSuite extends WritingLogStoreSuite {

  private var cluster: MiniDFSCluster = _
  private var next = 0

  override protected def conf: Configuration = cluster.getConfiguration(0)

  override protected def newDirectory(): Path = {
    next += 1
    new Path(cluster.getURI.toString, s"/table $next")
  }

  override def beforeAll(): Unit = {
    val settings = new Configuration()
    settings.set(
      MiniDFSCluster.HDFS_MINIDFS_BASEDIR,
      Files.createTempDirectory("hdfs").toString
    )
    cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).build()
    cluster.waitActive()
  }

  override def afterAll(): Unit = if (cluster != null) cluster.shutdown()
}
