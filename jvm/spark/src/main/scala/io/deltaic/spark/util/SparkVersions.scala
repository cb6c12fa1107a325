package io.deltaic.spark.util

import scala.jdk.CollectionConverters._

import org.apache.spark.SPARK_VERSION

import io.deltaic.protocol.{DeltaicException, SharedResource}
import io.deltaic.spark.shim.SparkLine

/**
 * The Spark versions that this jar is compiled for and tested with. It uses APIs that change between Spark versions, so
 * that each minor version of Spark has a jar of its own.
 */
private[spark] object SparkVersions {

  lazy val tested: Seq[String] =
    SharedResource.json(
      "spark-versions.json"
    ).get(SparkLine.name).elements.asScala.map(_.asText).toSeq

  /** @throws DeltaicThrowable if this is another Spark */
  def requireTested(): Unit = requireTested(SPARK_VERSION)

  /** @param version of Spark, possibly with a vendor's suffix, such as `4.2.0-vendor-1` */
  def requireTested(version: String): Unit =
    if (!tested.contains(release(version)))
      throw DeltaicException(
        "DELTAIC_SPARK_VERSION_UNSUPPORTED",
        Map(
          "version" -> version,
          "tested" -> tested.mkString(", "),
          "suggested" -> tested.last
        )
      )

  /** The Apache release of a version: `4.2.0` of `4.2.0-vendor-1`. */
  def release(version: String): String = version.takeWhile(c => c.isDigit || c == '.')
}
