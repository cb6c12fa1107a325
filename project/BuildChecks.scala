import java.util.zip.ZipFile

import scala.jdk.CollectionConverters._

import sbt._

/** Design rules that the build checks. A violation fails the build with a message on how to fix it. */
object BuildChecks {

  /** jvm/core is for every JVM with Hadoop, so Spark must not be on its class path. */
  def noSpark(classpath: Seq[File]): Unit = {
    val found = classpath.map(_.getName).filter(_.startsWith("spark-"))
    if (found.nonEmpty)
      sys.error(
        s"jvm/core must compile without Spark, but its class path holds ${found.mkString(", ")}. " +
          "Move the code that needs it to jvm/spark."
      )
  }

  /** Some classes are in Spark packages, because the API that they use is private to `org.apache.spark.sql`. */
  private val ours =
    Seq(
      "io/deltaic/",
      "org/apache/spark/sql/deltaic/",
      "org/apache/spark/sql/connect/delta/",
      "org/apache/spark/sql/execution/datasources/parquet/ParquetFolderInternals",
      "org/apache/spark/sql/execution/datasources/parquet/RowPositionHook",
      "deltaic-python/deltaic/",
      "META-INF/"
    )

  /** The jar shades nothing: it contains only our classes, our resources and our Python sources. */
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
