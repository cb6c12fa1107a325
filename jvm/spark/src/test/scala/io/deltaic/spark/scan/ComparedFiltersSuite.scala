package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{DataType, IntegerType, LongType}

class ComparedFiltersSuite extends munit.FunSuite {

  /** Each call returns a new attribute, as each query has its own. */
  private def column(name: String, dataType: DataType = LongType): Expression =
    AttributeReference(name, dataType)()

  private def compared(filters: Expression*): ComparedFilters = new ComparedFilters(filters)

  test("filters of two queries are equal, in any order and equivalent form") {
    val one = compared(GreaterThan(column("a"), Literal(1L)), IsNotNull(column("b")))
    val other = compared(IsNotNull(column("b")), LessThan(Literal(1L), column("a")))
    assertEquals(one, other)
    assertEquals(one.hashCode, other.hashCode)
  }

  test("filters on other columns, types or values are not equal") {
    val filters = compared(GreaterThan(column("a"), Literal(1L)))
    assertNotEquals(filters, compared(GreaterThan(column("b"), Literal(1L))))
    assertNotEquals(filters, compared(GreaterThan(column("a"), Literal(2L))))
    assertNotEquals(filters, compared(GreaterThan(column("a", IntegerType), Literal(1L))))
    assertNotEquals(filters, compared())
    val between = (a: String, b: String) => compared(LessThan(column(a), column(b)))
    assertEquals(between("a", "b"), between("a", "b"))
    assertNotEquals(between("a", "b"), between("b", "a"))
  }
}
