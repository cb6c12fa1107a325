package io.deltaic.replay

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.TableBuilder.{add, dv}
import io.deltaic.maintenance.{MaintenanceFixture, MaintenanceTask}
import io.deltaic.protocol._
import io.deltaic.{Damage, PatientSuite, TableBuilder}

/**
 * Logs with arbitrary content. Unreadable content is refused with an error of this engine that names its place;
 * readable content equals that of a plain JSON reader; damage to files that only repeat the commits is harmless.
 */
class MalformedLogSuite extends ScalaCheckSuite with PatientSuite {

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(300)

  private val mapper = new ObjectMapper()

  private val metadata = TableBuilder.metadata.copy(
    name = Some("a name"),
    configuration = Map(
      "delta.deletedFileRetentionDuration" -> "interval 1 week",
      "delta.setTransactionRetentionDuration" -> "interval 30 days"
    ),
    createdTimeMs = Some(12L)
  )
  private val protocol = Protocol(
    3,
    7,
    Some(Set("deletionVectors", "v2Checkpoint")),
    Some(Set("deletionVectors", "v2Checkpoint", "domainMetadata"))
  )
  private val first = Seq[Action](protocol, metadata, add("a"), add("b", 5, Some(dv("v"))))
  private val second = Seq[Action](
    add("c d").copy(stats = Some("""{"numRecords":3}"""), tags = Map("k" -> "v")),
    add("b", 5, Some(dv("w"))),
    MaintenanceFixture.remove("b").copy(deletionVector = Some(dv("v"))),
    add("e").copy(baseRowId = Some(3), defaultRowCommitVersion = Some(1)),
    SetTransaction("app", 3, Some(7L)),
    DomainMetadata("domain", "{}", removed = false)
  )

  private def text(actions: Seq[Action]): String =
    actions.map(ActionJson.write).mkString("", "\n", "\n")

  private def write(table: TableBuilder, name: String, bytes: Array[Byte]): Unit = {
    Files.write(table.log.resolve(name), bytes)
    ()
  }

  private def commit(version: Long): String = f"$version%020d.json"

  /** The result of a read, or an error of this engine; other exceptions fail the test. */
  private def read[A](body: => A): Either[DeltaicThrowable, A] =
    try Right(body)
    catch {
      case e: DeltaicThrowable =>
        assert(e.condition.startsWith("DELTAIC_"), e)
        assertEquals("<[a-zA-Z]+>".r.findFirstIn(e.getMessage.takeWhile(_ != '\n')), None)
        Left(e)
    }

  private type Files_ = Set[(String, Option[String])]

  private def files(table: TableBuilder, snapshot: Snapshot): Files_ =
    (0 until snapshot.files.size).map { i =>
      val file = snapshot.files.add(i)
      LogPath.canonical(table.path, file.path) -> file.dvId
    }.toSet

  /** The files of `before` after the actions in these bytes, by a minimal JSON reader. */
  private def expected(
      table: TableBuilder,
      bytes: Array[Byte],
      before: => Files_
  ): Option[Files_] = Try {
    val actions = mapper.readerFor(classOf[JsonNode]).readValues[JsonNode](bytes).readAll.asScala
    def key(action: JsonNode): (String, Option[String]) = {
      val vector = Option(action.get("deletionVector")).filterNot(_.isNull).map { v =>
        val name = v.get("storageType").asText + v.get("pathOrInlineDv").asText
        Option(v.get("offset")).filterNot(_.isNull).fold(name)(o => s"$name@${o.asText}")
      }
      LogPath.canonical(table.path, action.get("path").asText) -> vector
    }
    def keys(kind: String): Set[(String, Option[String])] =
      actions.map(_.get(kind)).filterNot(a => a == null || a.isNull).map(key).toSet
    val (added, removed) = (keys("add"), keys("remove"))
    assume(added.intersect(removed).isEmpty)
    before -- removed ++ added
  }.toOption

  private def checkCommit(table: TableBuilder, bytes: Array[Byte]): Unit = {
    write(table, commit(1), bytes)
    val log = table.open()
    read(files(table, log.latest())).foreach { found =>
      expected(table, bytes, files(table, table.open().at(0)))
        .foreach(assertEquals(found, _, new String(bytes, UTF_8)))
    }
    read(log.commit(1))
    read(log.commitInfos().toList)
    ()
  }

  property("a commit of random bytes is refused, or read as a plain reader would") {
    val table = TableBuilder().commit(0, first: _*)
    forAll(Gen.listOf(Gen.choose(Byte.MinValue, Byte.MaxValue)))(bytes =>
      checkCommit(table, bytes.toArray)
    )
  }

  property("a commit with damaged bytes is refused, or read as a plain reader would") {
    val table = TableBuilder().commit(0, first: _*)
    forAll(Damage.bytes(text(second).getBytes(UTF_8)))(checkCommit(table, _))
  }

  property("a commit with values of other kinds is refused, or read as a plain reader would") {
    val table = TableBuilder().commit(0, first: _*)
    val lines = second.map(a => mapper.readTree(ActionJson.write(a)))
    val mutated = for {
      i <- Gen.choose(0, lines.size - 1)
      line <- Damage.json(lines(i))
    } yield lines.updated(i, line).mkString("", "\n", "\n")
    forAll(mutated)(written => checkCommit(table, written.getBytes(UTF_8)))
  }

  property("a protocol or metaData with values of other kinds is refused, or read") {
    val lines = first.map(a => mapper.readTree(ActionJson.write(a)))
    val table = TableBuilder()
    val mutated = for {
      i <- Gen.choose(0, 1)
      line <- Damage.json(lines(i))
    } yield lines.updated(i, line).mkString("", "\n", "\n")
    forAll(mutated) { written =>
      write(table, commit(0), written.getBytes(UTF_8))
      read(table.open().latest().tombstones.size)
      read(table.open().latestFromChecksum())
      ()
    }
  }

  property("a checkpoint with values of other kinds is refused, or read as a plain reader would") {
    val checkpoint = """{"checkpointMetadata":{"version":1}}"""
    val actions = Seq(protocol, metadata, add("a")) ++ second.filterNot(_.isInstanceOf[RemoveFile])
    val lines =
      mapper.readTree(checkpoint) +: actions.map(a => mapper.readTree(ActionJson.write(a)))
    val table = TableBuilder()
    val name = "00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    val mutated = for {
      i <- Gen.choose(0, lines.size - 1)
      line <- Damage.json(lines(i))
    } yield lines.updated(i, line).mkString("", "\n", "\n").getBytes(UTF_8)
    def check(bytes: Array[Byte]): Option[Files_] = {
      write(table, name, bytes)
      val found = read(files(table, table.open().latest())).toOption
      found.foreach { files =>
        expected(table, bytes, Set.empty).foreach(assertEquals(files, _, new String(bytes, UTF_8)))
      }
      found
    }
    assertEquals(check(lines.mkString("\n").getBytes(UTF_8)).map(_.size), Some(4))
    forAll(mutated)(bytes => check(bytes).forall(_.size <= 4))
  }

  test("deep nesting, and numbers and names of any length, are refused") {
    val table = TableBuilder().commit(0, first: _*)
    Seq(
      "{\"x\":" * 200000,
      "{\"x\":" + "[" * 200000,
      "{\"add\":{\"tags\":" + "{\"a\":" * 200000,
      "{\"add\":{\"path\":\"a\",\"size\":" + "9" * 100000 + "}}",
      "{\"" + "x" * 100000 + "\":1}"
    ).foreach { bytes =>
      write(table, commit(1), bytes.getBytes(UTF_8))
      val result = read(table.open().latest())
      assertEquals(result.left.map(_.condition), Left("DELTAIC_LOG_ENTRY_MALFORMED"))
    }
  }

  /** A table with the commits of all versions, and with checkpoints, compactions and checksums. */
  private def withAllFiles(): TableBuilder = {
    val table = TableBuilder().commit(0, first: _*).commit(1, second: _*)
    (2L to 8L).foreach(v =>
      table.commit(v, add(s"f$v").copy(stats = Some(s"""{"numRecords":$v}""")))
    )
    MaintenanceFixture.run(
      table,
      4,
      MaintenanceTask.ClassicCheckpoint(None),
      MaintenanceTask.V2Checkpoint(2, alsoClassic = false)
    )
    val log = table.open()
    log.latest()
    MaintenanceFixture.maintenance(log, _ => MaintenanceFixture.plain)
      .run(8, Seq(MaintenanceTask.Checksum, MaintenanceTask.Compaction(5, 7)))
    table
  }

  private def bytesOf(table: TableBuilder, name: String): Array[Byte] =
    Files.readAllBytes(table.log.resolve(name))

  /** Reads the table with one file damaged, and puts the file back. */
  private def withDamage(table: TableBuilder, name: String, damaged: Array[Byte])(
      check: Either[DeltaicThrowable, Map[String, Any]] => Unit
  ): Unit = {
    val whole = bytesOf(table, name)
    write(table, name, damaged)
    try check(read(MaintenanceFixture.latest(table)))
    finally write(table, name, whole)
  }

  test("damage to a file that repeats the commits does not affect the result") {
    val table = withAllFiles()
    val truth = MaintenanceFixture.latest(table)
    val names = MaintenanceFixture.names(table).filterNot(_.matches("\\d{20}\\.json"))
    val hints = names.filter(n => n.endsWith(".crc") || n == "_last_checkpoint")
    val compaction = names.filter(_.endsWith(".compacted.json"))
    assertEquals((hints.size, compaction.size), (2, 1))
    for (name <- hints ++ compaction; seed <- 1 to seeds(60)) {
      val whole = bytesOf(table, name)
      // A changed character in a compaction is undetectable; the checksum detects a missing action.
      val damage = Gen.oneOf(
        if (hints.contains(name)) Damage.bytes(whole)
        else Gen.choose(0, whole.length).map(whole.take),
        Gen.const(Array.empty[Byte]),
        junk
      )
      withDamage(table, name, sample(damage, seed))(assertEquals(_, Right(truth), s"$name $seed"))
    }
  }

  test("a checkpoint with damaged pages is ignored") {
    val table = withAllFiles()
    val truth = MaintenanceFixture.latest(table)
    val checkpoints = MaintenanceFixture.checkpoints(table)
    assertEquals(checkpoints.size, 2)
    for (name <- checkpoints; seed <- 1 to seeds(100)) {
      val whole = bytesOf(table, name)
      // The footer has no checksum: damage there may give another valid file.
      val pages = whole.length - 8 - footerLength(whole)
      withDamage(table, name, sample(Damage.overwritten(whole, pages), seed)) {
        assertEquals(_, Right(truth), s"$name $seed")
      }
    }
  }

  test("a checkpoint with a damaged footer, or none, is refused or read") {
    val table = withAllFiles()
    val truth = MaintenanceFixture.latest(table)
    var unharmed = 0
    for (name <- MaintenanceFixture.checkpoints(table); seed <- 1 to seeds(150)) {
      val whole = bytesOf(table, name)
      val footer = 8 + footerLength(whole)
      val damage = Gen.oneOf(
        Damage.overwritten(whole.takeRight(footer), footer).map(whole.dropRight(footer) ++ _),
        Gen.choose(0, whole.length - 1).map(whole.take),
        junk
      )
      withDamage(table, name, sample(damage, seed)) { found =>
        if (found == Right(truth)) unharmed += 1
      }
    }
    val tried = 2 * seeds(150)
    assert(unharmed > tried * 2 / 3, s"only $unharmed of $tried read as before")
  }

  /** A third of them, but for `make test-thorough`. */
  private def seeds(all: Int): Int = if (sys.env.contains("DELTAIC_THOROUGH")) all else all / 3

  private def junk: Gen[Array[Byte]] =
    Gen.containerOf[Array, Byte](Gen.choose(Byte.MinValue, Byte.MaxValue))

  private def sample[A](gen: Gen[A], seed: Int): A =
    gen.pureApply(Gen.Parameters.default, org.scalacheck.rng.Seed(seed.toLong))

  /** The last eight bytes of a Parquet file are its footer's length and a magic number. */
  private def footerLength(parquet: Array[Byte]): Int =
    java.nio.ByteBuffer
      .wrap(parquet, parquet.length - 8, 4)
      .order(java.nio.ByteOrder.LITTLE_ENDIAN)
      .getInt
}
