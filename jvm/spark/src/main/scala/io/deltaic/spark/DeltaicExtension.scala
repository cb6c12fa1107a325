package io.deltaic.spark

import io.deltaic.spark.scan.DeletionVectorStrategy
import org.apache.spark.sql.SparkSessionExtensions

/** What Deltaic adds to a Spark session; named in `spark.sql.extensions`. */
class DeltaicExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectPlannerStrategy(_ => DeletionVectorStrategy)
}
