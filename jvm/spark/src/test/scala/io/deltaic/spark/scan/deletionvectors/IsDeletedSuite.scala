package io.deltaic.spark.scan.deletionvectors

import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratePredicate
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Expression,
  InterpretedPredicate,
  Literal,
  Predicate
}
import org.apache.spark.sql.types.{LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.dv.{DeletionVector, DeletionVectorStore}
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.spark.util.LocalSpark

/** The interpreted and the generated form of the expression, on the same rows, against the bitmap's own members. */
class IsDeletedSuite extends munit.FunSuite with LocalSpark {

  private def expression: Expression = IsDeleted(
    BoundReference(0, StringType, nullable = true),
    BoundReference(1, LongType, nullable = false),
    DeletionVectorSource("/no/such/table")(
      spark.sparkContext.broadcast(new SerializableConfiguration(new Configuration()))
    )
  )

  private def both: Seq[(String, InternalRow => Boolean)] = {
    val interpreted = InterpretedPredicate(expression)
    val generated = GeneratePredicate.generate(expression)
    Seq(interpreted, generated).foreach(_.initialize(0))
    Seq("interpreted" -> interpreted.eval _, "generated" -> generated.eval _)
  }

  private def constant(file: String, deleted: Long*): UTF8String = {
    val vector = new DeletionVectorStore(new Configuration()).inline(DeletionVector.of(deleted: _*))
    DeletionVectorConstant.encode(
      AddFile(file, Map.empty, 1L, 0L, dataChange = true, deletionVector = Some(vector))
    )
  }

  test("a row without a deletion vector is never deleted") {
    both.foreach { case (form, isDeleted) =>
      Seq(0L, 1L, Long.MaxValue).foreach(i => assert(!isDeleted(InternalRow(null, i)), form))
    }
  }

  test("the protocol's inline example deletes rows 3, 4, 7, 11, 18 and 29") {
    val example = DeletionVectorDescriptor(
      "i",
      "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
      None,
      40,
      6
    )
    val vector = DeletionVectorConstant.encode(
      AddFile("a.parquet", Map.empty, 1L, 0L, dataChange = true, deletionVector = Some(example))
    )
    both.foreach { case (form, isDeleted) =>
      val deleted = (0L to 40L).filter(i => isDeleted(InternalRow(vector, i)))
      assertEquals(deleted, Seq(3L, 4L, 7L, 11L, 18L, 29L), form)
    }
  }

  test("ascending, repeated, descending and random positions have the same results") {
    val random = new Random(7)
    val members = Seq.fill(500)(random.nextInt(5000).toLong).toSet ++ (2000L to 2300L)
    val vector = constant("a.parquet", members.toSeq: _*)
    val ascending = 0L until 5100L
    val orders = Seq(ascending, ascending.reverse, ascending.flatMap(i => Seq(i, i)))
    val scattered = Seq.fill(5000)(random.nextInt(5100).toLong)
    for ((form, isDeleted) <- both; rows <- orders :+ scattered)
      rows.foreach { row =>
        assertEquals(isDeleted(InternalRow(vector, row)), members(row), s"$form, row $row")
      }
  }

  test("each file is checked with its own vector, even if rows of files alternate") {
    val vectors = Seq(constant("a", 1, 5), constant("b", 2, 5), null, constant("c", 1L << 33))
    val deleted: Seq[Set[Long]] = Seq(Set(1, 5), Set(2, 5), Set.empty, Set(1L << 33))
    for ((form, isDeleted) <- both; row <- (0L to 8L) :+ (1L << 33); i <- vectors.indices) {
      // Row-based readers return a new string object for each row.
      val vector = Option(vectors(i)).map(_.clone()).orNull
      assertEquals(
        isDeleted(InternalRow(vector, row)),
        deleted(i)(row),
        s"$form, file $i, row $row"
      )
    }
  }

  test("the expression is never null and never folded away") {
    val isDeleted: Expression = expression
    assert(!isDeleted.nullable)
    assert(isDeleted.isInstanceOf[Predicate])
    assert(!isDeleted.foldable)
    val folded = isDeleted.withNewChildren(Seq(Literal.create(null, StringType), Literal(1L)))
    assertEquals(folded.eval(), false: Any)
  }

  test("a constant carries a descriptor and its file through encoding and back") {
    Seq(
      DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", Some(4), 40, 6),
      DeletionVectorDescriptor("p", "s3://bucket/a%20b|c.bin", Some(1), 33, 1L << 40),
      DeletionVectorDescriptor(
        "i",
        "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        None,
        40,
        6
      )
    ).foreach { dv =>
      val file =
        AddFile("p=%C3%A9/x y", Map.empty, 1, 0, dataChange = true, deletionVector = Some(dv))
      val decoded = DeletionVectorConstant.decode(DeletionVectorConstant.encode(file))
      assertEquals(decoded, (dv, file.path))
    }
  }
}
