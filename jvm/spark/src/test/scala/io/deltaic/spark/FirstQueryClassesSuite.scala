package io.deltaic.spark

import munit.FunSuite

private object Initialized {
  @volatile var isSo = false
}

private object SaysThatItIsInitialized {
  Initialized.isSo = true
}

class FirstQueryClassesSuite extends FunSuite {

  test("the list is of this Spark's classes and of ours") {
    val names = FirstQueryClasses.names
    assert(names.distinct.size == names.size && names.size > 3000, names.size)
    Seq("io.deltaic.spark.scan.", "org.codehaus.janino.", "org.apache.parquet.").foreach { prefix =>
      assert(names.exists(_.startsWith(prefix)), prefix)
    }
    val (ours, others) = names.partition(_.startsWith("io.deltaic."))
    val named = ours.filterNot(_.contains("$anon"))
    assertEquals(named.filter(name => FirstQueryClasses.load(Seq(name)) == 0), Nil)
    // The jars of PySpark hold some that the libraries of this build do not.
    assert(FirstQueryClasses.load(others) > others.size * 98 / 100)
  }

  test("a class that is not there is passed over, and one that is there is not initialized") {
    val there = "io.deltaic.spark.SaysThatItIsInitialized$"
    assertEquals(FirstQueryClasses.load(Seq("no.such.Name", there, "")), 1)
    assert(!Initialized.isSo)
    assert(SaysThatItIsInitialized != null && Initialized.isSo)
  }
}
