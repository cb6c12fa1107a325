package io.deltaic.spark.scan

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.expressions.filter.{And => V2And, Or => V2Or, Predicate}
import org.apache.spark.sql.connector.expressions.{
  Cast => V2Cast,
  Expression => V2Expression,
  Expressions,
  GeneralScalarExpression,
  Literal => V2Literal
}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.TableBuilder
import io.deltaic.protocol.{AddFile, Metadata, Protocol}
import io.deltaic.spark.schema.{ScanColumns, TableSchema}

class RuntimeFilteringSuite extends munit.FunSuite {

  private val columns = new StructType()
    .add("id", LongType)
    .add("text", StringType)
    .add("bytes", BinaryType)
    .add("list", ArrayType(LongType))
    .add("st", new StructType().add("x", LongType))
    .add("p", StringType)

  private val schema = TableSchema.of(
    "a table",
    Protocol(1, 2),
    Metadata("id", schemaString = columns.json, partitionColumns = Seq("p"))
  )

  private def filtering(read: String*): RuntimeFiltering =
    new RuntimeFiltering(schema, StructType(read.map(columns(_)) :+ ScanColumns.rowIndexField))

  private def file(path: String, p: String, min: Long, max: Long): AddFile = AddFile(
    path,
    Map("p" -> p),
    sizeBytes = 1,
    modificationTimeMs = 1,
    dataChange = true,
    stats = Some(
      s"""{"numRecords":9,"minValues":{"id":$min},"maxValues":{"id":$max},"nullCount":{"id":0}}"""
    )
  )

  private val files =
    IndexedSeq(file("f0", "a", 0, 9), file("f1", "a", 10, 19), file("f2", "b", 20, 29))

  private def long(value: Long): V2Expression = Expressions.literal(value)
  private def text(value: String): V2Expression =
    Expressions.literal(UTF8String.fromString(value))
  private def predicate(name: String, column: String, values: V2Expression*): Predicate =
    new Predicate(name, (Expressions.column(column) +: values).toArray)

  private def left(predicates: Predicate*): Seq[String] = {
    val runtime = filtering("id", "p")
    runtime.push(predicates)
    runtime.prune(files, None, runtime.take().get, ZoneOffset.UTC).map(_.path)
  }

  test("filter columns are the returned columns with bounds or partition values") {
    val found = filtering("id", "text", "bytes", "list", "st", "p").columns
    assertEquals(found.map(_.name), Seq("id", "text", "p"))
    assertEquals(filtering("text").columns.map(_.name), Seq("text"))
  }

  test("keys select the files that may contain one of them") {
    assertEquals(left(predicate("IN", "id", long(5), long(25))), Seq("f0", "f2"))
    assertEquals(left(predicate("IN", "p", text("b"), text("c"))), Seq("f2"))
    assertEquals(left(predicate("IN", "id", long(99))), Nil)
    assertEquals(left(predicate("IN", "id")), Nil)
    assertEquals(
      left(predicate("IN", "id", Expressions.literal[String](null), long(15))),
      Seq("f1")
    )
  }

  test("comparisons with a value select the files that may satisfy them") {
    assertEquals(left(predicate("=", "p", text("a"))), Seq("f0", "f1"))
    assertEquals(left(predicate("<", "id", long(10))), Seq("f0"))
    assertEquals(left(predicate("<=", "id", long(10))), Seq("f0", "f1"))
    assertEquals(left(predicate(">", "id", long(19))), Seq("f2"))
    assertEquals(left(predicate(">=", "id", long(19))), Seq("f1", "f2"))
  }

  test("other predicates select the files that may satisfy them") {
    assertEquals(left(predicate("<>", "p", text("a"))), Seq("f2"))
    assertEquals(left(predicate("<=>", "id", long(15))), Seq("f1"))
    assertEquals(left(predicate("STARTS_WITH", "p", text("b"))), Seq("f2"))
    assertEquals(left(predicate("IS_NULL", "id")), Nil)
    val or = new V2Or(predicate("=", "p", text("b")), predicate("<", "id", long(5)))
    assertEquals(left(or), Seq("f0", "f2"))
    val sum = new GeneralScalarExpression("+", Array(Expressions.column("id"), long(1)))
    assertEquals(left(new Predicate("=", Array(sum, long(20)))), Seq("f1"))
    val cast = new V2Cast(Expressions.column("id"), LongType, DecimalType(20, 0))
    val nine = new V2Literal[Decimal] {
      override def value(): Decimal = Decimal(BigDecimal(9), 20, 0)
      override def dataType(): DataType = DecimalType(20, 0)
    }
    assertEquals(left(new Predicate("<=", Array(cast, nine))), Seq("f0"))
  }

  test("several predicates must all hold") {
    val and = new V2And(predicate("=", "p", text("a")), predicate(">", "id", long(9)))
    assertEquals(left(and), Seq("f1"))
    assertEquals(left(predicate("=", "p", text("b")), predicate("IN", "id", long(5))), Nil)
  }

  test("unsupported predicates skip no files") {
    val all = Seq("f0", "f1", "f2")
    assertEquals(left(predicate("SOUNDS_LIKE", "p", text("a"))), all)
    assertEquals(left(predicate("IN", "absent", long(1))), all)
    assertEquals(left(predicate("IN", "id", Expressions.column("p"))), all)
    assertEquals(left(), all)
  }

  test("a predicate applies only to the next batch of its thread") {
    val runtime = filtering("id")
    assertEquals(runtime.take(), None)
    runtime.push(Seq(predicate("IN", "id", long(5))))
    var elsewhere: Option[Seq[Expression]] = Some(Nil)
    val other = new Thread(() => elsewhere = runtime.take())
    other.start()
    other.join()
    assertEquals(elsewhere, None)
    assert(runtime.take().exists(_.nonEmpty))
    assertEquals(runtime.take(), None)
  }

  test("files of a snapshot are pruned by its decoded statistics") {
    val table = TableBuilder.created(files: _*)
    val inMemory = table.open().latest().filesInMemory
    val runtime = filtering("id")
    runtime.push(Seq(predicate("IN", "id", long(5), long(25))))
    val keys = runtime.take().get
    def left(files: IndexedSeq[AddFile]) =
      runtime.prune(files, Some(inMemory), keys, ZoneOffset.UTC).map(_.path)
    // The statistics of these actions are not used, so they need not be parsed.
    val silent = files.reverse.map(_.copy(stats = None))
    assertEquals(left(silent), Seq("f2", "f0"))
    val stranger = files.head.copy(path = "another", stats = None)
    assertEquals(left(silent :+ stranger), Seq("f2", "f1", "f0", "another"))
  }
}
