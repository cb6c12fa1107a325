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

/** What replay says in the log, here because Spark brings one to say it in. */
class ReplayWarningsSuite extends munit.FunSuite {

  private def warnings(body: => Any): Seq[String] = said(Level.WARN)(body)

  private def said(level: Level)(body: => Any): Seq[String] = {
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
    val said = warnings(table.open().latest())
    assertEquals(said.size, 1, said.toString)
    (table.directory.toString +: parts).foreach(p => assert(said.head.contains(p), said.head))
  }

  test("a checkpoint that is passed over is named, with its table and what is wrong with it") {
    val name = f"${0}%020d.checkpoint.parquet"
    onlyWarning(TableBuilder.created(add("a")).file(name, "damaged"))(name, "version 0", "Parquet")
  }

  test("a checksum file that differs is named by its version, with the difference") {
    val table = TableBuilder.created(add("a")).file(f"${0}%020d.crc", """{"numFiles":2}""")
    onlyWarning(table)("version 0", "numFiles is 1 instead of 2")
  }

  test("a log compaction that is passed over is named") {
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
    test(s"of a damaged $kind no byte gets into the log as it is") {
      val damaged = "to\u0000\u0007ken\u009f\ufffd"
      val table = TableBuilder.created().commit(1, add("a")).commit(2, add("b")).file(name, damaged)
      val said = warnings(table.open().latest())
      assert(said.nonEmpty)
      said.foreach { text =>
        assert(!text.exists(c => c.isControl && c != '\n' || c == '\ufffd'), text)
      }
    }

  test("a hint with a wrong checksum is named") {
    val table = TableBuilder.created()
    onlyWarning(table.file("_last_checkpoint", """{"version":0,"checksum":"0"}"""))(
      "_last_checkpoint"
    )
  }

  test("what a snapshot cost is told when it is loaded, and not when it is only asked for") {
    val table = TableBuilder.created(add("a"), add("b"))
    val log = table.open()
    val loaded = said(Level.INFO)(log.latest())
    assertEquals(loaded.size, 1, loaded.toString)
    val bytes = log.latest().retainedBytes
    Seq(table.directory.toString, "version 0 ", " ms", "2 files", s"$bytes bytes of heap", "local")
      .foreach(part => assert(loaded.head.contains(part), loaded.head))
    assertEquals(said(Level.INFO)(log.latest()), Nil)
    table.commit(1, add("c"))
    assert(said(Level.INFO)(log.latest()).head.contains("version 1 "))
    val again = said(Level.INFO)(log.at(0))
    assert(again.size == 1 && again.head.contains("version 0 "), again.toString)
  }

  private val checkpoint = f"${0}%020d.checkpoint.parquet"

  private def distributed(table: TableBuilder, paths: Seq[String]): DeltaLog = {
    CheckpointRows.write(
      table,
      checkpoint,
      CheckpointRows.schema(CheckpointRows.header, CheckpointRows.plainAdd)
    )(
      Seq(CheckpointRows.protocolRow _, CheckpointRows.metadataRow _) ++
        paths.map(p => CheckpointRows.addRow(p) _): _*
    )
    new DeltaLog(table.path, table.conf, bytesInMemory = 0)
  }

  test("of a distributed snapshot it is told what stays in the checkpoint") {
    val log = distributed(TableBuilder.created(add("a")), Seq("x"))
    val loaded = said(Level.INFO)(log.latest())
    val parts = Seq("0 files in memory", "distributed", "checkpoint.parquet")
    parts.foreach(part => assert(loaded.head.contains(part), loaded.head))
  }

  test("a distributed snapshot whose files are not as its checksum file says is named, once") {
    val table = TableBuilder.created(add("a"))
    val told =
      """{"numFiles":2,"tableSizeBytes":7,"numDeletionVectorsOpt":1,"numDeletedRecordsOpt":4}"""
    table.file(f"${0}%020d.crc", told)
    val snapshot = distributed(table, Seq("x")).latest()
    val said = warnings(Seq(1, 2).foreach(_ => snapshot.noteCounted(FileCounts(1, 7, 1, 3))))
    assertEquals(said.size, 1, said.toString)
    val differences = "numFiles is 1 instead of 2; numDeletedRecords is 3 instead of 4"
    Seq(table.directory.toString, "version 0 ", differences)
      .foreach(part => assert(said.head.contains(part), said.head))
  }

  test("a checkpoint of a distributed snapshot that turns out to be unreadable is named") {
    val table = TableBuilder.created(add("a"))
    val log = distributed(table, (0 until 500).map(i => s"f-$i-${"x" * 50}"))
    val snapshot = log.latest()
    val file = table.log.resolve(checkpoint)
    val bytes = Files.readAllBytes(file)
    java.util.Arrays.fill(bytes, 4, bytes.length / 2, 0.toByte)
    Files.write(file, bytes)
    def read() = log.withReadableFiles(snapshot)(_.adds.map(_.path).toList)
    val told = warnings(assertEquals(read(), List("a")))
    assertEquals(told.size, 1, told.toString)
    Seq(table.directory.toString, "version 0 ", checkpoint)
      .foreach(part => assert(told.head.contains(part), told.head))
  }

  test("a log in order is read without a word") {
    assertEquals(warnings(TableBuilder.created(add("a")).commit(1).open().latest()), Nil)
  }
}
