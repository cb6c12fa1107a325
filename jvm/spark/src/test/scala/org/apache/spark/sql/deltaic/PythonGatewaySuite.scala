package org.apache.spark.sql.deltaic

import org.apache.spark.SparkContext
import org.apache.spark.sql.classic
import org.apache.spark.util.CallSite

import io.deltaic.spark.util.LocalSpark

class PythonGatewaySuite extends munit.FunSuite with LocalSpark {

  private val names =
    Seq(CallSite.SHORT_FORM, SparkContext.SPARK_JOB_DESCRIPTION, SparkContext.SPARK_JOB_GROUP_ID)

  /** The job properties of a thread that the gateway's thread creates. */
  private def inherited(): Seq[Option[String]] = PythonGateway.onOwnThread {
    var found = Seq.empty[Option[String]]
    val thread =
      new Thread(() => found = names.map(n => Option(spark.sparkContext.getLocalProperty(n))))
    thread.start()
    thread.join()
    found
  }

  test("the job description of the commit that starts the gateway does not apply to others") {
    val context = spark.sparkContext
    names.foreach(context.setLocalProperty(_, "of the first commit"))
    try
      JobInternals.described(spark.asInstanceOf[classic.SparkSession], "WRITE: write, t") {
        assertEquals(inherited(), names.map(_ => None))
      }
    finally names.foreach(context.setLocalProperty(_, null))
  }

  test("threads of the gateway are daemons, and load the session's classes") {
    val loader = Thread.currentThread.getContextClassLoader
    val (isDaemon, found) = PythonGateway.onOwnThread {
      (Thread.currentThread.isDaemon, Thread.currentThread.getContextClassLoader)
    }
    assert(isDaemon)
    assert(found eq loader)
  }

  test("an exception on a thread of the gateway is rethrown unchanged") {
    val e = intercept[IllegalStateException](
      PythonGateway.onOwnThread[Unit](throw new IllegalStateException("no port"))
    )
    assertEquals(e.getMessage, "no port")
  }
}
