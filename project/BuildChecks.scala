import java.util.zip.ZipFile

import scala.jdk.CollectionConverters._

import sbt._

/** Promises of the design that the build itself proves. Each one fails the build with what to do. */
object BuildChecks {

  /** jvm/core is meant for every JVM that knows Hadoop, so no Spark may be on its class path. */
  def noSpark(classpath: Seq[File]): Unit = {
    val found = classpath.map(_.getName).filter(_.startsWith("spark-"))
    if (found.nonEmpty)
      sys.error(
        s"jvm/core must compile without Spark, but its class path holds ${found.mkString(", ")}. " +
          "Move the code that needs it to jvm/spark."
      )
  }

  /** The shim lives in a package of Spark's, for what it touches is private to `org.apache.spark.sql`. */
  private val ours =
    Seq(
      "io/deltaic/",
      "org/apache/spark/sql/deltaic/",
      "org/apache/spark/sql/execution/datasources/parquet/RowPositionHook",
      "deltaic-python/deltaic/",
      "META-INF/"
    )

  /** The jar shades nothing: it holds our classes, our resources and our Python sources alone. */
  def onlyOurs(jar: File): Unit = {
    val zip = new ZipFile(jar)
    val entries =
      try zip.entries.asScala.filterNot(_.isDirectory).map(_.getName).toList
      finally zip.close()
    val foreign = entries.filterNot(entry => ours.exists(prefix => entry.startsWith(prefix)))
    if (foreign.nonEmpty)
      sys.error(
        s"$jar holds ${foreign.size} files that are not ours, ${foreign.head} among them. " +
          "Mark the dependency they come from as Provided in project/Dependencies.scala."
      )
  }
}
