package io.deltaic.replay

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}
import java.time.{LocalDateTime, ZoneOffset}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.TableBuilder
import io.deltaic.protocol.DeltaicThrowable

/**
 * Every golden table, against what delta-spark recorded of it. Log files get the modification times the records were made
 * with: version N at 2023-11-14T22:13:20Z plus N minutes.
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
    "deltalog-invalid-protocol-version" -> "DELTAIC_UNSUPPORTED_READER_VERSION",
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata" ->
      "DELTAIC_STATE_WITHOUT_METADATA",
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol" ->
      "DELTAIC_STATE_WITHOUT_PROTOCOL",
    "deltalog-state-reconstruction-without-metadata" -> "DELTAIC_STATE_WITHOUT_METADATA",
    "deltalog-state-reconstruction-without-protocol" -> "DELTAIC_STATE_WITHOUT_PROTOCOL",
    "data-reader-absolute-paths-escaped-chars" -> "DELTAIC_STATE_WITHOUT_METADATA",
    "versions-not-contiguous" -> "DELTAIC_LOG_GAP"
  ).map { case (name, condition) => s"golden__$name" -> condition }

  test("the corpus is there") {
    assertEquals(names.size, 107)
  }

  names.foreach { name =>
    test(s"$name is read as delta-spark reads it, or refused by name") {
      val expected = mapper.readTree(shared.resolve(s"expected/$name.json").toFile)
      val log = new DeltaLog(new Path(logCopy(name).toUri), new Configuration())
      refused.get(name) match {
        case Some(condition) =>
          val e = intercept[DeltaicThrowable](log.latest())
          assertEquals(e.condition, condition)
          assert(e.getMessage.contains(log.table.toString), e.getMessage)
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
    assertEquals(snapshot.timestampMs, timeMs(detail.get("lastModified").textValue))
    checkHistory(expected, log)
    checkTimeTravel(log)
  }

  /** A distributed snapshot of each version has the same in it. */
  private def checkDistributed(log: DeltaLog): Unit = {
    val leavesAll = new DeltaLog(log.table, new Configuration(), bytesInMemory = 0)
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

  /** Each version is found by its time, and is what its commits make it, read naively from the first one on. */
  private def checkTimeTravel(log: DeltaLog): Unit = {
    val latest = log.latest()
    val table = LocalPath.of(log.table.toUri.getPath)
    var naive = Set.empty[(String, String)]
    (log.earliestVersion to latest.version).foreach { version =>
      assertEquals(log.versionAt(baseTimeMs + version * 60000), version)
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
    intercept[DeltaicThrowable](log.versionAt(baseTimeMs - 1))
    intercept[DeltaicThrowable](log.versionAt(baseTimeMs + latest.version * 60000 + 1))
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
