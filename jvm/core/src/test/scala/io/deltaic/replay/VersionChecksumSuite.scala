package io.deltaic.replay

import org.apache.hadoop.fs.Path

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.{add, dv, metadata, protocol}
import io.deltaic.log.{LogStore, VersionChecksum}
import io.deltaic.protocol._

class VersionChecksumSuite extends munit.FunSuite {

  private def body(action: Action, kind: String): String =
    ActionJson.mapper.readTree(ActionJson.write(action)).get(kind).toString

  private def differences(table: TableBuilder, checksum: String): Seq[String] = {
    table.file(f"${0}%020d.crc", checksum)
    val store = LogStore.forPath(table.path, table.conf)
    val file = store.status(new Path(table.log.resolve(f"${0}%020d.crc").toUri)).get
    val snapshot = table.open().latest()
    VersionChecksum.read(store, file).toSeq.flatMap(ChecksumCheck.differences(_, snapshot))
  }

  private def table: TableBuilder = TableBuilder.created(
    add("a", sizeBytes = 5),
    add("b", sizeBytes = 7, dv = Some(dv("x"))),
    SetTransaction("app", 3),
    DomainMetadata("d", "{}", removed = false)
  )

  test("a complete and correct checksum has no differences") {
    val right = s"""{"txnId":"t","tableSizeBytes":12,"numFiles":2,"numMetadata":1,"numProtocol":1,
      "numDeletionVectorsOpt":1,"numDeletedRecordsOpt":1,"unknown":{},
      "setTransactions":[{"appId":"app","version":3}],
      "domainMetadata":[{"domain":"d","configuration":"{}","removed":false}],
      "metadata":${body(metadata, "metaData")},"protocol":${body(protocol, "protocol")}}"""
    assertEquals(differences(table, right), Nil)
  }

  Seq(
    """{"numFiles":3}""" -> "numFiles is 2 instead of 3",
    """{"tableSizeBytes":13}""" -> "tableSizeBytes is 12 instead of 13",
    """{"numMetadata":2}""" -> "numMetadata is 1 instead of 2",
    """{"numProtocol":0}""" -> "numProtocol is 1 instead of 0",
    """{"numDeletionVectorsOpt":0}""" -> "numDeletionVectors is 1 instead of 0",
    """{"numDeletedRecordsOpt":9}""" -> "numDeletedRecords is 1 instead of 9",
    """{"inCommitTimestampOpt":1}""" -> "inCommitTimestamp is",
    """{"setTransactions":[{"appId":"app","version":4}]}""" -> "txn of app differs",
    """{"domainMetadata":[]}""" -> "domainMetadata differs",
    """{"metadata":{"id":"other","schemaString":"{}"}}""" -> "metaData differs",
    """{"metadata":{"id":"test-table","schemaString":"{"}}""" -> "metaData differs",
    """{"protocol":{"minReaderVersion":1,"minWriterVersion":1}}""" -> "protocol is"
  ).foreach { case (checksum, difference) =>
    test(s"$checksum is found to differ, and the table is still read") {
      val found = differences(table, checksum)
      assert(found.size == 1 && found.head.startsWith(difference), found.toString)
    }
  }

  Seq("", "{", "[]", """{"numFiles":"x"}""", """{"protocol":{"minReaderVersion":"x"}}""").foreach {
    damaged =>
      test(s"a checksum file with '$damaged' is ignored") {
        assertEquals(differences(table, damaged), Nil)
      }
  }

  test("the checksum files of golden tables by delta-spark and Delta Kernel match the snapshots") {
    val tables = Seq(
      "commit-info-containing-arbitrary-operationParams-types",
      "kernel-timestamp-partition-col-ISO8601"
    )
    tables.foreach { name =>
      val path = new Path(TableBuilder.shared.resolve(s"tables/tables/golden__$name").toUri)
      val store = LogStore.forPath(path, TableBuilder().conf)
      val snapshot = new DeltaLog(path, TableBuilder().conf).latest()
      val file = new Path(path, f"_delta_log/${snapshot.version}%020d.crc")
      val checksum = VersionChecksum.read(store, store.status(file).get).get
      assert(checksum.protocol.isDefined && checksum.metadata.isDefined)
      assertEquals(ChecksumCheck.differences(checksum, snapshot), Nil, name)
    }
  }

  test("a wrong protocol in a checksum neither refuses nor accepts a table") {
    val protocols = Seq(
      """{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}""",
      """{"minReaderVersion":1,"minWriterVersion":2}"""
    )
    protocols.foreach { claimed =>
      val readable = TableBuilder.created(add("a"))
      CheckpointRows.write(
        readable,
        f"${0}%020d.checkpoint.parquet",
        CheckpointRows.schema(CheckpointRows.definitionColumns, CheckpointRows.plainAdd)
      )(CheckpointRows.protocolRow, CheckpointRows.metadataRow, CheckpointRows.addRow("x"))
      readable.file(f"${0}%020d.crc", s"""{"protocol":$claimed}""")
      assertEquals(readable.open().latest().files.path(0), "x")
      readable.commit(1, Protocol(3, 7, Some(Set("future")), Some(Set("future"))))
      readable.file(f"${1}%020d.crc", s"""{"protocol":$claimed}""")
      val e = intercept[DeltaicThrowable](readable.open().latest())
      assertEquals(e.condition, "DELTAIC_UNSUPPORTED_READER_FEATURE")
    }
  }
}
