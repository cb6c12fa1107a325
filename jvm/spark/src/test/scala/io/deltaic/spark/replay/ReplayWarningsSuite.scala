package io.deltaic.spark.replay

import java.nio.file.Files

import scala.collection.mutable

import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{Configurator, Property}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.{Level, LogManager}

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.replay.{CheckpointRows, DeltaLog, FileCounts}

/** Log messages of replay, tested here because Spark provides a logging implementation. */
class ReplayWarningsSuite extends munit.FunSuite {

  private def warnings(body: => Any): Seq[String] = logged(Level.WARN)(body)

  private def logged(level: Level)(body: => Any): Seq[String] = {
    val found = mutable.ArrayBuffer.empty[String]
    val appender = new AbstractAppender("warnings", null, null, false, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = found.synchronized {
        if (event.getLevel == level && event.getLoggerName.startsWith("io.deltaic")) {
          found += event.getMessage.getFormattedMessage
        }
      }
    }
    appender.start()
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    root.addAppender(appender)
    Configurator.setLevel("io.deltaic", level)
    try body
    finally root.removeAppender(appender)
    found.toSeq
  }

  private def onlyWarning(table: TableBuilder)(parts: String*): Unit = {
    val logged = warnings(table.open().latest())
    assertEquals(logged.size, 1, logged.toString)
    (table.directory.toString +: parts).foreach(p => assert(logged.head.contains(p), logged.head))
  }

  test("a skipped checkpoint is logged, with its table and the reason") {
    val name = f"${0}%020d.checkpoint.parquet"
    onlyWarning(TableBuilder.created(add("a")).file(name, "damaged"))(name, "version 0", "Parquet")
  }

  test("a checksum file that differs is logged with its version and the difference") {
    val table = TableBuilder.created(add("a")).file(f"${0}%020d.crc", """{"numFiles":2}""")
    onlyWarning(table)("version 0", "numFiles is 1 instead of 2")
  }

  test("a skipped log compaction is logged") {
    val name = f"${1}%020d.${2}%020d.compacted.json"
    val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b")).file(name, "{")
    onlyWarning(table)(name)
  }

  for (
    (kind, name) <- Seq(
      "checksum file" -> f"${2}%020d.crc",
      "log compaction" -> f"${1}%020d.${2}%020d.compacted.json",
      "checkpoint" -> f"${1}%020d.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    )
  )
    test(s"bytes of a damaged $kind are escaped in the log") {
      val damaged = "to\u0000\u0007ken\u009f\ufffd"
      val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b")).file(name, damaged)
      val logged = warnings(table.open().latest())
      assert(logged.nonEmpty)
      logged.foreach { string =>
        assert(!string.exists(c => c.isControl && c != '\n' || c == '\ufffd'), string)
      }
    }

  test("a hint with a wrong checksum is logged") {
    val table = TableBuilder.created()
    onlyWarning(table.file("_last_checkpoint", """{"version":0,"checksum":"0"}"""))(
      "_last_checkpoint"
    )
  }

  test("the cost of a snapshot is logged when it is loaded, not when it is only requested") {
    val table = TableBuilder.created(add("a"), add("b"))
    val log = table.open()
    val loaded = logged(Level.INFO)(log.latest())
    assertEquals(loaded.size, 1, loaded.toString)
    val bytes = log.latest().retainedBytes
    Seq(table.directory.toString, "version 0 ", " ms", "2 files", s"$bytes bytes of heap", "local")
      .foreach(part => assert(loaded.head.contains(part), loaded.head))
    assertEquals(logged(Level.INFO)(log.latest()), Nil)
    table.commit(1, add("c"))
    assert(logged(Level.INFO)(log.latest()).head.contains("version 1 "))
    val again = logged(Level.INFO)(log.at(0))
    assert(again.size == 1 && again.head.contains("version 0 "), again.toString)
  }

  private val checkpoint = f"${0}%020d.checkpoint.parquet"

  private def distributed(table: TableBuilder, paths: Seq[String]): DeltaLog = {
    CheckpointRows.write(
      table,
      checkpoint,
      CheckpointRows.schema(CheckpointRows.definitionColumns, CheckpointRows.plainAdd)
    )(
      Seq(CheckpointRows.protocolRow _, CheckpointRows.metadataRow _) ++
        paths.map(p => CheckpointRows.addRow(p) _): _*
    )
    new DeltaLog(table.path, table.conf, maxInMemoryBytes = 0)
  }

  test("what stays in the checkpoint of a distributed snapshot is logged") {
    val log = distributed(TableBuilder.created(add("a")), Seq("x"))
    val loaded = logged(Level.INFO)(log.latest())
    val parts = Seq("0 files in memory", "distributed", "checkpoint.parquet")
    parts.foreach(part => assert(loaded.head.contains(part), loaded.head))
  }

  test("a distributed snapshot whose files differ from its checksum file is logged once") {
    val table = TableBuilder.created(add("a"))
    val checksum =
      """{"numFiles":2,"tableSizeBytes":7,"numDeletionVectorsOpt":1,"numDeletedRecordsOpt":4}"""
    table.file(f"${0}%020d.crc", checksum)
    val snapshot = distributed(table, Seq("x")).latest()
    val logged = warnings(Seq(1, 2).foreach(_ => snapshot.recordCounts(FileCounts(1, 7, 1, 3))))
    assertEquals(logged.size, 1, logged.toString)
    val differences = "numFiles is 1 instead of 2; numDeletedRecords is 3 instead of 4"
    Seq(table.directory.toString, "version 0 ", differences)
      .foreach(part => assert(logged.head.contains(part), logged.head))
  }

  test("an unreadable checkpoint of a distributed snapshot is logged") {
    val table = TableBuilder.created(add("a"))
    val log = distributed(table, (0 until 500).map(i => s"f-$i-${"x" * 50}"))
    val snapshot = log.latest()
    val file = table.log.resolve(checkpoint)
    val bytes = Files.readAllBytes(file)
    java.util.Arrays.fill(bytes, 4, bytes.length / 2, 0.toByte)
    Files.write(file, bytes)
    def read() = log.withReadableFiles(snapshot)(_.adds.map(_.path).toList)
    val logged = warnings(assertEquals(read(), List("a")))
    assertEquals(logged.size, 1, logged.toString)
    Seq(table.directory.toString, "version 0 ", checkpoint)
      .foreach(part => assert(logged.head.contains(part), logged.head))
  }

  test("a valid log is read without warnings") {
    assertEquals(warnings(TableBuilder.created(add("a")).commit(1).open().latest()), Nil)
  }
}
