package io.deltaic.spark

import munit.FunSuite

private object Initialized {
  @volatile var isTrue = false
}

private object RecordsInitialization {
  Initialized.isTrue = true
}

class FirstQueryClassesSuite extends FunSuite {

  test("the list has classes of this Spark version and of Deltaic") {
    val names = FirstQueryClasses.names
    assert(names.distinct.size == names.size && names.size > 3000, names.size)
    Seq("io.deltaic.spark.scan.", "org.codehaus.janino.", "org.apache.parquet.").foreach { prefix =>
      assert(names.exists(_.startsWith(prefix)), prefix)
    }
    val (ours, others) = names.partition(_.startsWith("io.deltaic."))
    val named = ours.filterNot(_.contains("$anon"))
    assertEquals(named.filter(name => FirstQueryClasses.load(Seq(name)) == 0), Nil)
    // The jars of PySpark have some classes that the libraries of this build lack.
    assert(FirstQueryClasses.load(others) > others.size * 98 / 100)
  }

  test("a missing class is skipped, and an existing one is loaded but not initialized") {
    val existing = "io.deltaic.spark.RecordsInitialization$"
    assertEquals(FirstQueryClasses.load(Seq("no.such.Name", existing, "")), 1)
    assert(!Initialized.isTrue)
    assert(RecordsInitialization != null && Initialized.isTrue)
  }
}
