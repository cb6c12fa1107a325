package io.deltaic.log

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.util.concurrent.{Callable, CountDownLatch, Executors}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.hdfs.MiniDFSCluster

import io.deltaic.faults.{Faults, FaultyContext, FaultySchemeFileSystem}
import io.deltaic.protocol.DeltaicThrowable

/** The guarantees of [[LogStore]], for every store that can write. */
abstract class WritingLogStoreSuite extends munit.FunSuite {

  protected def conf: Configuration
  protected def newDirectory(): Path

  protected def commit(directory: Path, version: Long): Path =
    FileNames.commit(FileNames.logDirectory(directory), version)

  // Protocol: creation-of-new-log-entries-1
  test("a file is written once, and never again") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    assertEquals(store.writeIfAbsent(path, Iterator("é", "b")), WriteOutcome.Written)
    assertEquals(store.writeIfAbsent(path, Iterator("other")), WriteOutcome.AlreadyExists)
    assertEquals(store.writeIfAbsent(path, "x".getBytes), WriteOutcome.AlreadyExists)
    assertEquals(new String(store.read(path), UTF_8), "é\nb\n")
    assertEquals(new String(Using.resource(store.open(path))(_.readAllBytes), UTF_8), "é\nb\n")
  }

  test("a failed write creates no file and leaves no temporary file") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    val broken = Iterator("a") ++ Iterator.continually(throw new IllegalStateException("no more"))
    intercept[IllegalStateException](store.writeIfAbsent(path, broken))
    assertEquals(store.status(path), None)
    assertEquals(store.listFrom(path.getParent, "").toList, Nil)
  }

  test("writeBesideIfAbsent creates no directory, and no file if its guard throws") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    def write(guard: () => Unit): WriteOutcome =
      store.writeBesideIfAbsent(path, guard)(_.write(1))
    intercept[DeltaicThrowable](write(() => ()))
    intercept[IOException](store.makeDirectory(new Path(path.getParent, "inner")))
    assertEquals(store.status(path.getParent), None)
    store.writeIfAbsent(new Path(path.getParent, "other"), Iterator("x"))
    intercept[IllegalStateException](write(() => throw new IllegalStateException("replaced")))
    assertEquals(store.listFrom(path.getParent, "").map(_.getPath.getName).toList, List("other"))
    assertEquals(write(() => ()), WriteOutcome.Written)
    (0 until 2).foreach(_ => store.makeDirectory(new Path(path.getParent, "inner")))
    assert(store.status(new Path(path.getParent, "inner")).exists(_.isDirectory))
  }

  // Protocol: creation-of-new-log-entries-1
  test("one of several threads that create the same version wins, and its content stays") {
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

  test("files are listed in order from a name on, and a missing directory lists as empty") {
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

  test("reading a missing file throws FileNotFoundException") {
    val path = commit(newDirectory(), 7)
    val store = LogStore.forPath(path, conf)
    intercept[FileNotFoundException](store.read(path))
    intercept[FileNotFoundException](store.open(path))
    assertEquals(store.status(path), None)
  }
}

class LocalLogStoreSuite extends WritingLogStoreSuite {
  override protected val conf = new Configuration()
  override protected def newDirectory(): Path =
    new Path(Files.createTempDirectory("log store é%").toUri)

  // Protocol: creation-of-new-log-entries-2
  test("one of several processes wins each version, and its content stays") {
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

  test("a write that fails before the file has its name is reported, and leaves no file") {
    val directory = Files.createTempDirectory("blocked")
    Files.writeString(directory.resolve("_delta_log"), "a file where the directory should be")
    val commit = new Path(new Path(directory.toUri), "_delta_log/00000000000000000000.json")
    val store = LogStore.forPath(commit, new Configuration())
    val e = intercept[DeltaicThrowable](store.writeIfAbsent(commit, Iterator("x")))
    assertEquals(e.condition, "DELTAIC_LOG_WRITE_FAILED")
    assertEquals(e.parameters("file"), commit.toString)
    assertEquals(Files.list(directory).iterator.asScala.size, 1)
  }

  test("a Hadoop checksum file is deleted with the content that it describes") {
    val path = commit(newDirectory(), 0)
    val store = LogStore.forPath(path, conf)
    val hadoop = path.getFileSystem(conf)
    def written(text: String): Unit = Using.resource(hadoop.create(path))(_.write(text.getBytes))
    def read(): String = new String(Using.resource(hadoop.open(path))(_.readAllBytes), UTF_8)
    def names(): List[String] = store.listFrom(path.getParent, "").map(_.getPath.getName).toList
    written("theirs")
    assertEquals(names().size, 2)
    store.replace(path, "ours".getBytes)
    assertEquals(read(), "ours")
    written("theirs")
    assert(store.delete(path))
    assertEquals(names(), Nil)
    written("theirs")
    Files.delete(Paths.get(path.toUri.getPath))
    assertEquals(store.writeIfAbsent(path, Iterator("ours")), WriteOutcome.Written)
    assertEquals(read(), "ours\n")
  }

  // Protocol: creation-of-new-log-entries-2
  test("a scheme without a known store is readable, and writes are refused with the scheme") {
    val directory = Files.createTempDirectory("other")
    Files.writeString(directory.resolve("a"), "content")
    val other = new Configuration()
    other.set("fs.other.impl", classOf[OtherFileSystem].getName)
    val path = new Path(s"other://$directory/a")
    val store = LogStore.forPath(path, other)
    assertEquals(new String(store.read(path), UTF_8), "content")
    val e = intercept[DeltaicThrowable](store.writeIfAbsent(new Path(path, "b"), Iterator("x")))
    assertEquals(e.condition, "DELTAIC_LOG_STORE_UNSUPPORTED")
    assertEquals(e.parameters("scheme"), "other")
    assertEquals(Files.list(directory).iterator.asScala.size, 1)
  }
}

/** A local file system with another scheme. */
class OtherFileSystem extends org.apache.hadoop.fs.RawLocalFileSystem {
  override def getUri: java.net.URI = java.net.URI.create("other:///")
  override def getScheme: String = "other"
}

/** A process that tries to write every version, in the same order as the others. */
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

/** Runs against a name node and a data node of real HDFS, in this process. */
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

/** A store that publishes by closing a stream, without a rename. */
class ObjectLogStoreSuite extends WritingLogStoreSuite {

  override protected val conf: Configuration = {
    val settings = new Configuration()
    settings.set("fs.objects.impl", classOf[ObjectsFileSystem].getName)
    settings.set("spark.deltaic.logStore.objects.impl", "createIfAbsent")
    settings
  }

  override protected def newDirectory(): Path =
    new Path(s"objects://${Files.createTempDirectory("object store é")}")

  override def afterEach(context: AfterEach): Unit = {
    Faults.disarm()
    ()
  }

  test("a put whose reply is lost is written, and a repeated put recognizes its own content") {
    val path = FileNames.commit(FileNames.logDirectory(newDirectory()), 0)
    val store = LogStore.forPath(path, conf)
    Faults.arm("put", "", 1, "fail after")
    assertEquals(store.writeIfAbsent(path, Iterator("ours")), WriteOutcome.Written)
    assertEquals(Faults.disarm(), 1)
    assertEquals(new String(store.read(path), UTF_8), "ours\n")
  }

  test("a put that may still arrive has an unknown outcome") {
    val path = FileNames.commit(FileNames.logDirectory(newDirectory()), 0)
    val store = LogStore.forPath(path, conf)
    Faults.arm("put", "", 1, "fail before")
    intercept[IOException](store.writeIfAbsent(path, Iterator("ours")))
    assertEquals(store.status(path), None)
    assertEquals(store.writeIfAbsent(path, Iterator("ours")), WriteOutcome.Written)
  }

  test("content larger than the buffer is written, and its temporary file is deleted") {
    val path = FileNames.commit(FileNames.logDirectory(newDirectory()), 0)
    val store = LogStore.forPath(path, conf)
    val line = "x" * 1023
    assertEquals(store.writeIfAbsent(path, Iterator.fill(20 << 10)(line)), WriteOutcome.Written)
    val bytes = store.read(path)
    assertEquals(bytes.length, 20 << 20)
    assert(bytes.grouped(1024).forall(b => b.length == 1024 && b(1023) == '\n'))
    val temporary = Files.list(Paths.get(sys.props("java.io.tmpdir"))).iterator.asScala
    assertEquals(
      temporary.map(_.getFileName.toString).filter(_.startsWith("deltaic-log-")).toList,
      Nil
    )
  }

  test("a file is replaced only if its directory exists") {
    val path = new Path(FileNames.logDirectory(newDirectory()), FileNames.LastCheckpoint)
    val store = LogStore.forPath(path, conf)
    intercept[DeltaicThrowable](store.replace(path, "a".getBytes))
    store.writeIfAbsent(new Path(path.getParent, "other"), Iterator("x"))
    Seq("a", "b").foreach(text => store.replace(path, text.getBytes))
    assertEquals(new String(store.read(path), UTF_8), "b")
  }
}

/** Renames that fail, report the wrong result, or lose their reply: the temporary file shows the outcome. */
class FaultyRenameSuite extends WritingLogStoreSuite {

  override protected val conf: Configuration = {
    val settings = new Configuration()
    settings.set("fs.faulty.impl", classOf[FaultySchemeFileSystem].getName)
    settings.set("fs.AbstractFileSystem.faulty.impl", classOf[FaultyContext].getName)
    settings.set("spark.deltaic.logStore.faulty.impl", "rename")
    settings
  }

  override protected def newDirectory(): Path =
    new Path(s"faulty://${Files.createTempDirectory("renaming")}")

  override def afterEach(context: AfterEach): Unit = {
    Faults.disarm()
    ()
  }

  private def written(effect: String)(meanwhile: Path => Unit): (Path, Try[WriteOutcome]) = {
    val path = FileNames.commit(FileNames.logDirectory(newDirectory()), 0)
    val store = LogStore.forPath(path, conf)
    store.writeIfAbsent(new Path(path.getParent, "first"), Iterator("makes the directory"))
    Faults.arm("rename", "json", 1, effect)
    Faults.meanwhile = () => meanwhile(path)
    val outcome = Try(store.writeBesideIfAbsent(path, () => ())(_.write('a')))
    assertEquals(Faults.disarm(), 1)
    assertEquals(
      store.listFrom(path.getParent, ".").map(_.getPath.getName).count(_.startsWith(".")),
      0
    )
    (path, outcome)
  }

  private def exists(path: Path): Boolean = LogStore.forPath(path, conf).status(path).isDefined

  test("a rename whose reply is lost is written") {
    val (path, outcome) = written("fail after")(_ => ())
    assertEquals(outcome, Success(WriteOutcome.Written): Try[WriteOutcome])
    assert(exists(path))
  }

  test("a rename that reports success without effect fails with a certain error") {
    val (path, outcome) = written("lie")(_ => ())
    outcome match {
      case Failure(e: DeltaicThrowable) => assertEquals(e.condition, "DELTAIC_LOG_WRITE_FAILED")
      case other => fail(s"$other")
    }
    assert(!exists(path))
  }

  test("a rename that reports success after another writer was first is not written") {
    val (path, outcome) = written("lie") { path =>
      Files.writeString(Paths.get(path.toUri.getPath), "theirs")
      ()
    }
    assertEquals(outcome, Success(WriteOutcome.AlreadyExists): Try[WriteOutcome])
    assertEquals(new String(LogStore.forPath(path, conf).read(path), UTF_8), "theirs")
  }

  test("a rename that copied and left its source is written") {
    val (path, outcome) = written("lie") { path =>
      Files.writeString(Paths.get(path.toUri.getPath), "a")
      ()
    }
    assertEquals(outcome, Success(WriteOutcome.Written): Try[WriteOutcome])
    assert(exists(path))
  }

  test("a rename that fails without a reason after another writer was first is not written") {
    val (_, outcome) = written("fail before") { path =>
      Files.writeString(Paths.get(path.toUri.getPath), "theirs")
      ()
    }
    assertEquals(outcome, Success(WriteOutcome.AlreadyExists): Try[WriteOutcome])
  }

  test("a rename that fails without another writer has an unknown outcome") {
    val (path, outcome) = written("fail before")(_ => ())
    assert(outcome.failed.get.isInstanceOf[IOException], outcome)
    assert(!exists(path))
  }
}

class LogStoreChoiceSuite extends munit.FunSuite {

  private def choose(scheme: String, settings: (String, String)*): LogStore = {
    val conf = new Configuration()
    settings.foreach { case (name, value) => conf.set(name, value) }
    LogStore.forPath(new Path(s"$scheme://host/table/_delta_log"), conf)
  }

  test("each scheme gets the store for its file system, and other schemes are read-only") {
    Seq("hdfs", "viewfs", "abfs", "abfss").foreach { scheme =>
      assert(choose(scheme).isInstanceOf[RenamingLogStore], scheme)
    }
    Seq("s3a", "s3", "gs").foreach(s => assert(choose(s).isInstanceOf[ObjectLogStore], s))
    assert(choose("other").isInstanceOf[ReadOnlyLogStore])
    assertEquals(choose("file"), LocalLogStore)
  }

  test("a setting chooses a built-in store or a class, for its scheme only") {
    val setting = "spark.deltaic.logStore.other.impl"
    assert(choose("other", setting -> "rename").isInstanceOf[RenamingLogStore])
    assert(choose("another", setting -> "rename").isInstanceOf[ReadOnlyLogStore])
    val own = classOf[RenamingLogStore].getName
    assert(choose("other", setting -> own).isInstanceOf[RenamingLogStore])
    Seq("nonsense", "java.lang.String").foreach { value =>
      val e = intercept[DeltaicThrowable](choose("other", setting -> value))
      assertEquals(e.condition, "DELTAIC_INVALID_SESSION_SETTING")
      assertEquals((e.parameters("setting"), e.parameters("value")), (setting, value))
    }
  }

  test("delta-spark's setting applies after our own, if it names a LogStore of ours") {
    val older = "spark.delta.logStore.other.impl"
    val ours = classOf[RenamingLogStore].getName
    assert(choose("other", older -> ours).isInstanceOf[RenamingLogStore])
    val theirs = "io.delta.storage.S3SingleDriverLogStore"
    assert(choose("other", older -> theirs).isInstanceOf[ReadOnlyLogStore])
    val both =
      choose("other", older -> ours, "spark.deltaic.logStore.other.impl" -> "conditionalPut")
    assert(both.isInstanceOf[ObjectLogStore])
  }

  test("a setting of delta-spark's DynamoDB store on S3 is refused by name") {
    val theirs = "io.delta.storage.S3DynamoDBLogStore"
    Seq(
      "spark.delta.logStore.class" -> theirs,
      "spark.delta.logStore.s3a.impl" -> theirs,
      s"spark.$theirs.ddb.tableName" -> "delta_log",
      s"$theirs.ddb.region" -> "eu-west-1"
    ).foreach { case (name, value) =>
      // This host does not exist, so any access to it would fail with another error.
      val e = intercept[DeltaicThrowable](choose("s3a", name -> value))
      assertEquals(e.condition, "DELTAIC_DYNAMODB_LOG_STORE")
      assertEquals((e.parameters("setting"), e.parameters("value")), (name, value))
      val own = "spark.deltaic.logStore.s3a.impl" -> "conditionalPut"
      assert(choose("s3a", name -> value, own).isInstanceOf[ObjectLogStore])
      assertEquals(choose("file", name -> value), LocalLogStore)
    }
    val single = "io.delta.storage.S3SingleDriverLogStore"
    assert(choose("s3a", "spark.delta.logStore.s3a.impl" -> single).isInstanceOf[ObjectLogStore])
  }
}
