package io.deltaic.spark

import munit.FunSuite

class FirstQueryClassesSuite extends FunSuite {

  test("the list is of this Spark's classes and of ours") {
    val names = FirstQueryClasses.names
    assert(names.distinct.size == names.size && names.size > 3000, names.size)
    Seq("io.deltaic.spark.scan.", "org.codehaus.janino.", "org.apache.parquet.").foreach { prefix =>
      assert(names.exists(_.startsWith(prefix)), prefix)
    }
    // Of those that make up for the boot class path, some are PySpark's alone.
    assert(FirstQueryClasses.load(names) > names.size * 98 / 100)
  }

  test("a class that is not there is passed over") {
    assertEquals(FirstQueryClasses.load(Seq("no.such.Name", "scala.Option", "")), 1)
  }
}
