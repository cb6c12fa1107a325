package io.deltaic.dv

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeletionVectorDescriptor

/** Reads every deletion vector in the logs of tables that delta-spark wrote. */
class GoldenDeletionVectorSuite extends munit.FunSuite {

  private val tables =
    LocalPath.of(sys.env.getOrElse("DELTAIC_GOLDEN_TABLES", "/work/shared/tables/tables"))
  private val store = new DeletionVectorStore(new Configuration())
  private val json = new ObjectMapper()

  Seq(
    "golden__dv-partitioned-with-checkpoint" -> 10,
    "golden__dv-with-columnmapping" -> 10,
    "golden__log-replay-dv-key-cases" -> 3
  ).foreach { case (name, files) =>
    test(s"$name: every vector is read and has the rows that its file can have") {
      val table = tables.resolve(name)
      assume(Files.isDirectory(table), s"$table is not there")
      val descriptors = mentioned(table)
      assertEquals(descriptors.map(_._2.pathOrInlineDv).toSet.size, files)
      descriptors.foreach { case (dataFile, descriptor, numRecords) =>
        val vector = store.read(new Path(table.toUri), dataFile, descriptor)
        assertEquals(vector.cardinality, descriptor.cardinality)
        numRecords.foreach(records => assertEquals(vector.cursor().seek(records), Long.MaxValue))
        assertEquals(vector.serialize().length, descriptor.sizeBytes)
      }
    }
  }

  /** Data file, descriptor and number of records of each file action that has a vector. */
  private def mentioned(table: LocalPath): Seq[(String, DeletionVectorDescriptor, Option[Long])] =
    for {
      commit <- local(table.resolve("_delta_log")).filter(_.toString.endsWith(".json"))
      line <- Files.readAllLines(commit).asScala.toSeq
      kind <- Seq("add", "remove")
      action <- Option(json.readTree(line).get(kind))
      dv <- Option(action.get("deletionVector")).filterNot(_.isNull)
    } yield (action.get("path").asText, descriptor(dv), numRecords(action))

  private def local(directory: LocalPath): Seq[LocalPath] = {
    val files = Files.list(directory)
    try files.iterator.asScala.toList
    finally files.close()
  }

  private def descriptor(dv: JsonNode): DeletionVectorDescriptor = DeletionVectorDescriptor(
    storageType = dv.get("storageType").asText,
    pathOrInlineDv = dv.get("pathOrInlineDv").asText,
    offset = Option(dv.get("offset")).map(_.asInt),
    sizeBytes = dv.get("sizeInBytes").asInt,
    cardinality = dv.get("cardinality").asLong
  )

  private def numRecords(action: JsonNode): Option[Long] =
    Option(action.get("stats")).map(stats => json.readTree(stats.asText).get("numRecords").asLong)
}
