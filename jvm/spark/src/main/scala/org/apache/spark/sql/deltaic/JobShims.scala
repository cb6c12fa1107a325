package org.apache.spark.sql.deltaic

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}

import scala.reflect.ClassTag

import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.util.CallSite
import org.apache.spark.{SparkContext, SparkEnv}

/** Jobs of our own, which no plan of a query contains. */
object JobShims {

  /**
   * Applies `f` to each item in a task of its own, under the session's SQL settings.
   *
   * @param description what the job is called where Spark lists jobs
   * @return all results, in the order of the items. They travel compressed: together they may be as large as
   *   `spark.driver.maxResultSize` allows.
   */
  def inExecutors[A: ClassTag, B](spark: SparkSession, description: String, items: Seq[A])(
      f: A => Iterator[B]
  ): Seq[B] =
    if (items.isEmpty) Nil
    else
      described(spark, description) {
        SQLExecution.withSQLConfPropagated(spark) {
          spark.sparkContext
            .parallelize(items, items.size)
            .mapPartitions(part => Iterator(packed(part.flatMap(f))))
            .collect()
            .toSeq
            .flatMap(unpacked[B])
        }
      }

  /** What jobs are called: an operation, as the history names it, a phase of it, and the table's path. */
  def name(operation: String, phase: String, table: String): String =
    s"$operation: $phase, $table"

  /** What jobs that `body` runs are called where Spark lists jobs. */
  def described[A](spark: SparkSession, description: String)(body: => A): A = {
    val end = describe(spark, description)
    try calledAs(spark, s"deltaic $description")(body)
    finally end()
  }

  /**
   * What Spark lists what `body` runs as, unless the user has named it: the call of the user. Spark would look
   * for it on the stack, and take the innermost line that is not its own, which is one of ours.
   */
  def calledAs[A](spark: SparkSession, call: String)(body: => A): A = {
    val context = spark.sparkContext
    if (context.getLocalProperty(CallSite.SHORT_FORM) != null) body
    else {
      context.setLocalProperty(CallSite.SHORT_FORM, call)
      try body
      finally context.setLocalProperty(CallSite.SHORT_FORM, null)
    }
  }

  /**
   * As [[described]], for jobs that this thread runs from now on.
   *
   * @return ends that. What the user has called them stays in front, what an outer description of ours
   *   says does not.
   */
  def describe(spark: SparkSession, description: String): () => Unit = {
    val context = spark.sparkContext
    val names = Seq(SparkContext.SPARK_JOB_DESCRIPTION, OwnDescription, DescriptionOfUser)
    val before = names.map(name => name -> context.getLocalProperty(name)).toMap
    val now = before(SparkContext.SPARK_JOB_DESCRIPTION)
    val isOurs = now != null && now == before(OwnDescription)
    val ofUser = Option(if (isOurs) before(DescriptionOfUser) else now).filter(_.nonEmpty)
    val full = (ofUser.toSeq :+ s"deltaic $description").mkString(": ")
    names.zip(Seq(full, full, ofUser.orNull)).foreach { case (name, text) =>
      context.setLocalProperty(name, text)
    }
    () => before.foreach { case (name, text) => context.setLocalProperty(name, text) }
  }

  /** What we have set last, and what the user had set before. */
  private val OwnDescription = "io.deltaic.job.description"
  private val DescriptionOfUser = "io.deltaic.job.description.ofUser"

  private def packed(results: Iterator[_]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val stream = serializer.serializeStream(codec.compressedOutputStream(bytes))
    try results.foreach(result => stream.writeObject(result))
    finally stream.close()
    bytes.toByteArray
  }

  private def unpacked[B](bytes: Array[Byte]): Iterator[B] = {
    val compressed = codec.compressedInputStream(new ByteArrayInputStream(bytes))
    serializer.deserializeStream(compressed).asIterator.asInstanceOf[Iterator[B]]
  }

  private def serializer = SparkEnv.get.closureSerializer.newInstance()

  private def codec = CompressionCodec.createCodec(SparkEnv.get.conf, "zstd")
}
