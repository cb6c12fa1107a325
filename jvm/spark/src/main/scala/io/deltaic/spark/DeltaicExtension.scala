package io.deltaic.spark

import org.apache.spark.sql.SparkSessionExtensions

import io.deltaic.spark.scan.DeletionVectorStrategy
import io.deltaic.spark.write.RecordReads

/** What Deltaic adds to a Spark session; named in `spark.sql.extensions`. */
class DeltaicExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPlannerStrategy(_ => RecordReads)
    extensions.injectPlannerStrategy(_ => DeletionVectorStrategy)
  }
}
