package io.deltaic.spark

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.sql.{MarkTableChanges, StatementParser, TableChangesFunctions}

/** What Deltaic adds to a Spark session; named in `spark.sql.extensions`. */
class DeltaicExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    SparkVersions.requireTested()
    FirstQueryClasses.loadInBackground()
    extensions.injectParser { (session, spark) =>
      new StatementParser(session.asInstanceOf[SparkSession], spark)
    }
    // Sessions with Hive support do not have this hook in Spark 4.2.0: nothing else may depend on it.
    extensions.injectHintResolutionRule(_ => MarkTableChanges)
    SessionRules.resolution.foreach(rule => extensions.injectResolutionRule(rule(_)))
    SessionRules.postHocResolution.foreach(rule => extensions.injectPostHocResolutionRule(rule(_)))
    SessionRules.planNormalization.foreach(rule => extensions.injectPlanNormalizationRule(rule(_)))
    SessionRules.optimizer.foreach(rule => extensions.injectPreCBORule(rule(_)))
    SessionRules.strategies.foreach(strategy => extensions.injectPlannerStrategy(_ => strategy))
    TableChangesFunctions.inject(extensions)
  }
}
