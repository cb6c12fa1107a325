package io.deltaic.spark.scan.files

import java.nio.file.{Files => LocalFiles}

import scala.util.Try

import org.apache.parquet.example.data.Group
import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression, Literal}
import org.apache.spark.sql.classic
import org.apache.spark.sql.types._
import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import io.deltaic.protocol._
import io.deltaic.replay.{CheckpointRows, DeltaLog, Snapshot, TableSize}
import io.deltaic.spark.schema.{PhysicalSchema, TableSchema}
import io.deltaic.spark.skipping.{
  RandomFile,
  RandomFiles,
  RandomPredicates,
  RowAggregate,
  StatsTable
}
import io.deltaic.spark.util.LocalSpark
import io.deltaic.{PatientSuite, TableBuilder}

/** Compares file selection in executors with that on the driver, whose results [[SkippingSoundnessSuite]] checks. */
class DistributedFilesSuite extends PatientSuite with LocalSpark {
  import DistributedFilesSuite._

  /** In the checkpoint, and in the commits that follow it. */
  private val (stored, later) =
    Gen.listOfN(150, RandomFiles.file).pureApply(Gen.Parameters.default, Seed(7L)).splitAt(130)

  private val predicates: Seq[Expression] = Gen
    .listOfN(60, RandomPredicates.predicate())
    .pureApply(Gen.Parameters.default, Seed(11L))

  private val forms: Map[String, TableBuilder => Unit] = Map(
    "one file of several row groups" -> (writeClassic(_, rowGroupBytes = 8192)),
    "two parts" -> writeParts,
    "JSON with sidecars" -> writeSidecars,
    "JSON alone" -> writeJson
  )

  forms.foreach { case (form, checkpoint) =>
    test(s"executors select the same files of a checkpoint of $form as the driver") {
      val table = build(checkpoint)
      val (local, distributed) = (open(table, DeltaLog.NeverDistributed), open(table, 0))
      assert(distributed.snapshot.isDistributed && !local.snapshot.isDistributed)
      assertEquals(distributed.size, local.size)
      assertEquals(distributed.select(ScanFilters.none), local.select(ScanFilters.none))
      val chosen = predicates.map(p => Try(local.select(ScanFilters(Seq(p)))) -> p)
      chosen.foreach { case (expected, predicate) =>
        assertSameFiles(expected, distributed, predicate)
      }
      // Otherwise the test would be trivial.
      assert(chosen.count(_._1.toOption.exists(_.size < 140)) > predicates.size / 3)
    }
  }

  test("executors send no more of the first files than have enough rows") {
    val table = build(writeParts)
    val (local, distributed) = (open(table, DeltaLog.NeverDistributed), open(table, 0))
    Seq(0L, 1L, 7L, 100L, 100000L).foreach { rows =>
      def first(files: SnapshotFiles) = LimitedFiles(files, rows).select(ScanFilters.none)
      assertEquals(first(distributed), first(local))
    }
  }

  test("aggregates from the log are the same, by group and for all rows") {
    val table = build(writeClassic(_, rowGroupBytes = 8192))
    val (local, distributed) = (open(table, DeltaLog.NeverDistributed), open(table, 0))
    val (p, q) = (attribute("p"), attribute("q"))
    val aggregates = Seq(
      RowAggregate.CountRows,
      RowAggregate.CountValues(q),
      RowAggregate.Min(q),
      RowAggregate.Max(q)
    )
    val filters = Seq(EqualTo(p, Literal("a")))
    for (groupBy <- Seq(Nil, Seq(p), Seq(p, q)); some <- Seq(Nil, filters)) {
      def answer(files: SnapshotFiles) =
        files.aggregate(some, groupBy, aggregates).map(_.map(_.toSeq).toSet)
      assertEquals(answer(distributed), answer(local))
    }
    assertEquals(
      distributed.aggregate(Nil, Nil, Seq(RowAggregate.CountRows)).isDefined,
      stored.concat(later).forall(_.stats.stats.contains("numRecords"))
    )
  }

  test("executors return exact counts if every file has a record count") {
    val table = TableBuilder().commit(0, protocol, metadata)
    val adds = (0 until 500).map(i =>
      AddFile(
        s"f$i",
        Map("x_p" -> (i % 3).toString, "x_q" -> (if (i % 5 == 0) null else i.toString)),
        10,
        0,
        dataChange = true,
        stats = Some(s"""{"numRecords":$i}""")
      )
    )
    writeFile(table, classicName, adds, withDefinition = true, rowGroupBytes = 4096)
    table.commit(1, adds(7).remove(System.currentTimeMillis))
    val distributed = open(table, 0)
    val p = attribute("p")
    val aggregates = Seq(
      RowAggregate.CountRows,
      RowAggregate.CountValues(attribute("q")),
      RowAggregate.Min(attribute("q")),
      RowAggregate.Max(attribute("q"))
    )
    val found = distributed.aggregate(Nil, Seq(p), aggregates).get
    val live = adds.indices.filter(_ != 7)
    val expected = (0 until 3).map { value =>
      val rows = live.filter(_ % 3 == value)
      val known = rows.filter(_ % 5 != 0)
      // A file without rows adds no group and no bound.
      Seq[Any](value.toString, rows.sum.toLong, known.sum.toLong, known.min, known.max)
    }
    assertEquals(found.map(row => row(0).toString +: row.toSeq.tail).toSet, expected.toSet)
  }

  test("a checkpoint with a slice that executors cannot read is skipped") {
    val table = TableBuilder()
      .commit(0, protocol, metadata, AddFile("a", Map.empty, 1, 0, dataChange = true))
    writeClassic(table, rowGroupBytes = 1L << 27)
    val distributed = open(table, 0)
    val file = table.log.resolve(classicName)
    val bytes = LocalFiles.readAllBytes(file)
    java.util.Arrays.fill(bytes, 4, bytes.length / 2, 0.toByte)
    LocalFiles.write(file, bytes)
    assertEquals(distributed.select(ScanFilters.none).map(_.path).toList, List("a"))
    assertEquals(distributed.size.numFiles, 1L)
    table.delete(f"${0}%020d.json").commit(1, AddFile("b", Map.empty, 1, 0, dataChange = true))
    val e = intercept[DeltaicThrowable](open(table, 0).select(ScanFilters.none))
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assert(e.getMessage.contains(classicName), e.getMessage)
  }

  test("executors read a checkpoint once, and leave out what commits have superseded since") {
    val table = build(writeClassic(_, rowGroupBytes = 8192))
    val expected = open(table, DeltaLog.NeverDistributed).select(ScanFilters.none)
    val log = new DeltaLog(table.path, table.conf, 0)
    assertEquals(newest(log).select(ScanFilters.none), expected)
    val file = table.log.resolve(classicName)
    val modified = LocalFiles.getLastModifiedTime(file)
    LocalFiles.write(file, new Array[Byte](LocalFiles.size(file).toInt))
    LocalFiles.setLastModifiedTime(file, modified)
    table.commit(5, files(9).remove(System.currentTimeMillis))
    val left = newest(log)
    assert(left.snapshot.isDistributed && left.snapshot.version == 5)
    assertEquals(left.select(ScanFilters.none), expected.filterNot(_.path == files(9).path))
  }

  test("the size of a distributed table is what a query counts, whatever its checksum file has") {
    val table = TableBuilder().commit(0, protocol, metadata)
    writeFile(table, classicName, files, withDefinition = true)
    table.commit(1, files(0).remove(System.currentTimeMillis), addOf(later.head, "later"))
      .file(f"${1}%020d.crc", """{"numFiles":7,"tableSizeBytes":70}""")
    val expected = open(table, DeltaLog.NeverDistributed).snapshot.size
    val few: Seq[SnapshotFiles => Any] = Seq(
      _.select(ScanFilters(Seq(EqualTo(attribute("p"), Literal("a"))))),
      LimitedFiles(_, 1).select(ScanFilters.none),
      _.aggregate(Nil, Nil, Seq(RowAggregate.CountRows)),
      _.size
    )
    few.foreach { query =>
      val distributed = open(table, 0)
      assertEquals(distributed.snapshot.size, Some(TableSize(7, 70)))
      query(distributed)
      assertEquals(distributed.snapshot.size, expected)
    }
  }

  private def assertSameFiles(
      expected: Try[IndexedSeq[AddFile]],
      distributed: SnapshotFiles,
      predicate: Expression
  ): Unit = {
    val found = Try(distributed.select(ScanFilters(Seq(predicate))))
    def described(files: Try[IndexedSeq[AddFile]]): Either[String, IndexedSeq[AddFile]] =
      files.toEither.left.map {
        case e: DeltaicThrowable => e.condition
        case other => throw other
      }
    assertEquals(described(found), described(expected), predicate.toString)
  }

  private def build(checkpoint: TableBuilder => Unit): TableBuilder = {
    val table = TableBuilder().commit(0, protocol, metadata, files.last)
    checkpoint(table)
    val now = System.currentTimeMillis
    val (again, moreRows) = (files(3), files(4))
    table
      .commit(1, later.zipWithIndex.map { case (f, i) => addOf(f, s"later-$i") }: _*)
      .commit(2, files(0).remove(now), files(1).remove(now), again.remove(now))
      .commit(3, again)
      .commit(4, moreRows.remove(now), moreRows.copy(deletionVector = Some(TableBuilder.dv("v"))))
  }

  private def open(table: TableBuilder, maxInMemoryBytes: Long): SnapshotFiles =
    newest(new DeltaLog(table.path, table.conf, maxInMemoryBytes))

  private def newest(log: DeltaLog): SnapshotFiles = {
    val snapshot: Snapshot = log.latest()
    SnapshotFiles(
      spark.asInstanceOf[classic.SparkSession],
      log,
      snapshot,
      TableSchema.of(snapshot)
    )
  }

  private def attribute(name: String) = StatsTable.attributes.find(_.name == name).get

  private lazy val files: Seq[AddFile] =
    stored.zipWithIndex.map { case (f, i) => addOf(f, s"stored-$i") }

  private def writeClassic(table: TableBuilder, rowGroupBytes: Long): Unit =
    writeFile(table, classicName, files, withDefinition = true, rowGroupBytes)

  private def writeParts(table: TableBuilder): Unit =
    files.grouped(files.size / 2).zipWithIndex.foreach { case (some, i) =>
      val name = f"${0}%020d.checkpoint.${i + 1}%010d.${2}%010d.parquet"
      writeFile(table, name, some, withDefinition = i == 0)
    }

  private def writeSidecars(table: TableBuilder): Unit = {
    val names = files.grouped(files.size / 2).zipWithIndex.map { case (some, i) =>
      writeFile(table, s"_sidecars/$i.parquet", some, withDefinition = false)
      s"$i.parquet"
    }
    json(table, names.map(Sidecar(_, 1, 1)).toSeq)
  }

  private def writeJson(table: TableBuilder): Unit = json(table, files)

  private def json(table: TableBuilder, more: Seq[Action]): Unit = {
    val actions = Seq(CheckpointMetadata(0), protocol, metadata) ++ more
    table.file(
      f"${0}%020d.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
      actions.map(ActionJson.write).mkString("", "\n", "\n")
    )
    ()
  }
}

private object DistributedFilesSuite {
  import CheckpointRows.{schema => columns}

  val classicName: String = f"${0}%020d.checkpoint.parquet"

  private val features = Set("deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint")
  val protocol: Protocol = Protocol(3, 7, Some(features), Some(features))

  val metadata: io.deltaic.protocol.Metadata = io.deltaic.protocol.Metadata(
    "random",
    schemaString = mapped(StatsTable.schema).asInstanceOf[StructType].json,
    partitionColumns = Vector("p", "q"),
    configuration = Map("delta.columnMapping.mode" -> "name")
  )

  def addOf(file: RandomFile, path: String): AddFile = AddFile(
    path,
    file.stats.partitionValues,
    sizeBytes = 10L + path.length,
    modificationTimeMs = 5,
    dataChange = true,
    stats = Some(file.stats.stats),
    deletionVector = Option.when(file.deletedRows > 0)(
      TableBuilder.dv(path).copy(cardinality = file.deletedRows.toLong)
    )
  )

  /** The names that the statistics of [[RandomFiles]] use. */
  private def mapped(dataType: DataType): DataType = dataType match {
    case struct: StructType => StructType(struct.zipWithIndex.map { case (field, i) =>
        val names = new MetadataBuilder()
          .putString(PhysicalSchema.PhysicalName, StatsTable.physicalName(field))
          .putLong(PhysicalSchema.ColumnId, i.toLong)
        StructField(field.name, mapped(field.dataType), field.nullable, names.build())
      })
    case other => other
  }

  private val addColumn =
    """
    optional group add {
      optional binary path (UTF8); optional int64 size; optional int64 modificationTime;
      optional binary stats (UTF8);
      optional group partitionValues (MAP) {
        repeated group key_value { required binary key (UTF8); optional binary value (UTF8); } }
      optional group deletionVector {
        optional binary storageType (UTF8); optional binary pathOrInlineDv (UTF8);
        optional int32 offset; optional int32 sizeInBytes; optional int64 cardinality; } }"""

  private val definitionColumns =
    """
    optional group protocol {
      optional int32 minReaderVersion; optional int32 minWriterVersion;
      optional group readerFeatures (LIST) { repeated group list { optional binary element (UTF8); } }
      optional group writerFeatures (LIST) { repeated group list { optional binary element (UTF8); } }
    }
    optional group metaData {
      optional binary id (UTF8); optional binary schemaString (UTF8);
      optional group partitionColumns (LIST) { repeated group list { optional binary element (UTF8); } }
      optional group configuration (MAP) {
        repeated group key_value { required binary key (UTF8); optional binary value (UTF8); } }
    }"""

  def writeFile(
      table: TableBuilder,
      name: String,
      adds: Seq[AddFile],
      withDefinition: Boolean,
      rowGroupBytes: Long = 1L << 27
  ): Unit = {
    val first = if (withDefinition) Seq(protocolRow _, metadataRow _) else Nil
    val schema = columns((if (withDefinition) Seq(definitionColumns) else Nil) :+ addColumn: _*)
    CheckpointRows.write(table, name, schema, rowGroupBytes)(
      first ++ adds.map(a => addRow(a) _): _*
    )
  }

  private def protocolRow(row: Group): Unit = {
    val p = row.addGroup("protocol").append("minReaderVersion", 3).append("minWriterVersion", 7)
    Seq("readerFeatures", "writerFeatures").foreach { name =>
      strings(p.addGroup(name), features.toSeq)
    }
  }

  private def metadataRow(row: Group): Unit = {
    val m = row.addGroup("metaData")
      .append("id", metadata.id)
      .append("schemaString", metadata.schemaString)
    strings(m.addGroup("partitionColumns"), metadata.partitionColumns)
    entries(m.addGroup("configuration"), metadata.configuration)
  }

  private def addRow(add: AddFile)(row: Group): Unit = {
    val a = row.addGroup("add")
      .append("path", add.path)
      .append("size", add.sizeBytes)
      .append("modificationTime", add.modificationTimeMs)
    add.stats.foreach(a.append("stats", _))
    entries(a.addGroup("partitionValues"), add.partitionValues)
    add.deletionVector.foreach { dv =>
      a.addGroup("deletionVector")
        .append("storageType", dv.storageType)
        .append("pathOrInlineDv", dv.pathOrInlineDv)
        .append("offset", dv.offset.get)
        .append("sizeInBytes", dv.sizeBytes)
        .append("cardinality", dv.cardinality)
    }
  }

  private def strings(list: Group, values: Seq[String]): Unit =
    values.foreach(v => list.addGroup("list").append("element", v))

  private def entries(map: Group, values: Map[String, String]): Unit =
    values.foreach { case (key, value) =>
      val entry = map.addGroup("key_value").append("key", key)
      if (value != null) entry.append("value", value)
    }
}
