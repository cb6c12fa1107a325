package io.deltaic.replay

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}
import java.time.{LocalDateTime, ZoneOffset}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.TableBuilder
import io.deltaic.protocol.{DeltaicThrowable, TableFeatures}

/**
 * Compares every golden table with delta-spark's recorded results. Log files get the modification times of the
 * recording: version N at 2023-11-14T22:13:20Z plus N minutes.
 */
class GoldenTablesSuite extends munit.FunSuite {

  private val shared = TableBuilder.shared.resolve("tables")
  private val mapper = new ObjectMapper()
  private val baseTimeMs = 1700000000000L

  private val names = {
    val files = Files.list(shared.resolve("expected"))
    try files.iterator.asScala.map(_.getFileName.toString.stripSuffix(".json")).toVector.sorted
    finally files.close()
  }

  /** The tables that cannot be opened, and why. */
  private val refused: Map[String, String] = Map(
    "golden__deltalog-invalid-protocol-version" -> "DELTAIC_UNSUPPORTED_READER_VERSION",
    "golden__deltalog-state-reconstruction-from-checkpoint-missing-metadata" ->
      "DELTAIC_STATE_WITHOUT_METADATA",
    "golden__deltalog-state-reconstruction-from-checkpoint-missing-protocol" ->
      "DELTAIC_STATE_WITHOUT_PROTOCOL",
    "golden__deltalog-state-reconstruction-without-metadata" -> "DELTAIC_STATE_WITHOUT_METADATA",
    "golden__deltalog-state-reconstruction-without-protocol" -> "DELTAIC_STATE_WITHOUT_PROTOCOL",
    "golden__data-reader-absolute-paths-escaped-chars" -> "DELTAIC_STATE_WITHOUT_METADATA",
    "golden__versions-not-contiguous" -> "DELTAIC_LOG_GAP",
    "deltars__err_table_c" -> "DELTAIC_LOG_GAP",
    "deltars__err_table_d" -> "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "deltars__err_table_e" -> "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "deltars__err_table_f" -> "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "deltars__err_table_h" -> "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "deltars__err_table_i" -> "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "deltars__simple_table_features" -> "DELTAIC_UNSUPPORTED_READER_VERSION"
  )

  /** The error classes of delta-spark that correspond to our error conditions. */
  private val recordedAs: Map[String, String] = Map(
    "DELTAIC_UNSUPPORTED_READER_VERSION" -> "DELTA_INVALID_PROTOCOL_VERSION",
    "DELTAIC_UNSUPPORTED_READER_FEATURE" -> "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    "DELTAIC_STATE_WITHOUT_METADATA" -> "DELTA_STATE_RECOVER_ERROR",
    "DELTAIC_STATE_WITHOUT_PROTOCOL" -> "DELTA_STATE_RECOVER_ERROR",
    "DELTAIC_LOG_GAP" -> "DELTA_VERSIONS_NOT_CONTIGUOUS"
  )

  /**
   * delta-spark does not read a checkpoint without the commit of its version. The protocol does not require that
   * commit.
   */
  private val onlyCheckpoint = Set("deltars__table-with-domain-metadata")

  test("the corpus exists") {
    assertEquals(names.size, 182)
  }

  names.foreach { name =>
    // Protocol: protocol-evolution-5
    test(s"$name is read as in delta-spark, or refused by name") {
      val expected = mapper.readTree(shared.resolve(s"expected/$name.json").toFile)
      val log = new DeltaLog(new Path(logCopy(name).toUri), new Configuration())
      refused.get(name) match {
        case Some(condition) =>
          val e = intercept[DeltaicThrowable](log.latest())
          assertEquals(e.condition, condition)
          val recorded = item(expected, "latest").path("expect").path("error").path("condition")
          assertEquals(recorded.textValue, recordedAs(condition))
          assert(e.getMessage.contains(log.table.toString), e.getMessage)
        case None if onlyCheckpoint(name) =>
          val versions = expected.path("log").path("checkpoints").elements.asScala.map(_.longValue)
          assertEquals(log.latest().version, versions.max)
          assertEquals(log.commitInfos().toList, Nil)
          checkDistributed(log)
        case None =>
          check(expected, log)
          checkDistributed(log)
      }
    }
  }

  private def check(expected: JsonNode, log: DeltaLog): Unit = {
    val snapshot = log.latest()
    val detail = item(expected, "detail").path("expect").path("result")
    assertEquals(snapshot.files.size, detail.get("numFiles").intValue)
    assertEquals(snapshot.files.totalSizeBytes, detail.get("sizeInBytes").longValue)
    assertEquals(snapshot.metadata.id, detail.get("id").textValue)
    assertEquals(
      snapshot.metadata.partitionColumns.toList,
      detail.get("partitionColumns").elements.asScala.map(_.textValue).toList
    )
    assertEquals(snapshot.protocol.minReaderVersion, detail.get("minReaderVersion").intValue)
    assertEquals(snapshot.protocol.minWriterVersion, detail.get("minWriterVersion").intValue)
    checkHistory(expected, log)
    checkLastModified(detail, log)
    checkTimeTravel(log)
  }

  /** A distributed snapshot of each version has the same content. */
  private def checkDistributed(log: DeltaLog): Unit = {
    val leavesAll = new DeltaLog(log.table, new Configuration(), maxInMemoryBytes = 0)
    (log.earliestVersion to log.latest().version).foreach { version =>
      DistributedSnapshots.assertSame(leavesAll.at(version), log.at(version))
    }
    DistributedSnapshots.assertSame(leavesAll.latest(), log.latest())
  }

  private def checkHistory(expected: JsonNode, log: DeltaLog): Unit = {
    val wanted = item(expected, "history").path("expect").path("result").path("history")
    val found = log.commitInfos().map { case (version, time, info) =>
      (version, info.flatMap(_.operation), time)
    }
    assertEquals(
      found.toList,
      wanted.elements.asScala
        .map(h => (h.get(0).longValue, Option(h.get(1).textValue), timeMs(h.get(2).textValue)))
        .toList
    )
  }

  /** delta-spark reports the time of the commit file, even with in-commit timestamps. */
  private def checkLastModified(detail: JsonNode, log: DeltaLog): Unit = {
    val snapshot = log.latest()
    val ofFile = timeMs(detail.get("lastModified").textValue)
    if (TableFeatures.isActive(snapshot.protocol, snapshot.metadata, "inCommitTimestamp")) {
      assertEquals(ofFile, baseTimeMs + snapshot.version * 60000)
      assertEquals(snapshot.timestampMs, log.commitInfos().next()._2)
    } else assertEquals(snapshot.timestampMs, ofFile)
  }

  /** Each version is found by its time, and equals a naive replay of all commits. */
  private def checkTimeTravel(log: DeltaLog): Unit = {
    val latest = log.latest()
    val table = LocalPath.of(log.table.toUri.getPath)
    var naive = Set.empty[(String, String)]
    val times = log.commitInfos().map { case (version, timeMs, _) => version -> timeMs }.toMap
    (log.earliestVersion to latest.version).foreach { version =>
      val notAfter = times.keys.filter(v => times(v) <= times(version))
      assertEquals(log.versionAt(times(version)), notAfter.max)
      val snapshot = log.at(version)
      assertEquals(snapshot.version, version)
      if (log.earliestVersion == 0) {
        naive = naivelyAdvanced(naive, table.resolve(f"_delta_log/$version%020d.json"))
        val found = (0 until snapshot.files.size).map(snapshot.files.add)
        assertEquals(found.map(a => plain(a.path) -> a.dvId.getOrElse("")).toSet, naive)
        assertEquals(found.size, naive.size)
        found.zipWithIndex.foreach { case (a, i) =>
          assertEquals(snapshot.files.indexOf(a.path, a.dvId), i)
        }
      }
    }
    intercept[DeltaicThrowable](log.versionAt(times.values.min - 1))
    intercept[DeltaicThrowable](log.versionAt(times(latest.version) + 1))
    val missing = intercept[DeltaicThrowable](log.at(latest.version + 1))
    assertEquals(missing.condition, "DELTAIC_VERSION_NOT_FOUND")
  }

  private def naivelyAdvanced(files: Set[(String, String)], commit: LocalPath) = {
    val actions = Files.readAllLines(commit).asScala.map(mapper.readTree)
    def keys(kind: String) = actions.flatMap(a => Option(a.get(kind))).map { file =>
      val dv = file.path("deletionVector")
      val offset = if (dv.hasNonNull("offset")) s"@${dv.get("offset")}" else ""
      val id = dv.path("storageType").asText + dv.path("pathOrInlineDv").asText + offset
      plain(file.get("path").asText) -> id
    }
    files -- keys("remove") ++ keys("add")
  }

  private def plain(path: String): String = new java.net.URI(path).getPath

  private def item(expected: JsonNode, kind: String): JsonNode =
    expected.get("items").elements.asScala.find(_.get("kind").textValue == kind).get

  private def timeMs(text: String): Long =
    LocalDateTime.parse(text).toInstant(ZoneOffset.UTC).toEpochMilli

  private def logCopy(name: String): LocalPath = {
    val from = shared.resolve(s"tables/$name/_delta_log")
    val table = Files.createTempDirectory("golden")
    val to = table.resolve("_delta_log")
    val files = Files.walk(from)
    try
      files.iterator.asScala.filter(Files.isRegularFile(_)).foreach { file =>
        val copy = to.resolve(from.relativize(file).toString)
        Files.createDirectories(copy.getParent)
        Files.write(copy, Files.readAllBytes(file))
        val version = file.getFileName.toString.take(20).toLongOption.getOrElse(0L)
        Files.setLastModifiedTime(copy, FileTime.fromMillis(baseTimeMs + version * 60000))
      }
    finally files.close()
    table
  }
}
