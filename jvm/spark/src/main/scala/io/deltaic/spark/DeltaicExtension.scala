package io.deltaic.spark

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.catalog.TimeTravelExpressions
import io.deltaic.spark.rowlevel.EndWholeFiles
import io.deltaic.spark.scan.DeletionVectorStrategy
import io.deltaic.spark.sql._
import io.deltaic.spark.stream.StreamStrategy
import io.deltaic.spark.write.{RecordReads, SkipAppliedWrites}

/** What Deltaic adds to a Spark session; named in `spark.sql.extensions`. */
class DeltaicExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    FirstQueryClasses.loadInBackground()
    extensions.injectParser((_, spark) => new StatementParser(spark))
    // The hints' batch is the one that runs before Spark resolves tables.
    extensions.injectHintResolutionRule(s => TimeTravelExpressions(s.asInstanceOf[SparkSession]))
    extensions.injectHintResolutionRule(_ => MarkTableChanges)
    extensions.injectHintResolutionRule(s => MarkViewTargets(s.asInstanceOf[SparkSession]))
    extensions.injectHintResolutionRule(s => MarkChanges(s.asInstanceOf[SparkSession]))
    extensions.injectHintResolutionRule(s => MarkWrites(s.asInstanceOf[SparkSession]))
    extensions.injectResolutionRule(ResolveTableChanges(_))
    extensions.injectResolutionRule(_ => PlanConstraints)
    extensions.injectResolutionRule(_ => PlanShowStatements)
    extensions.injectResolutionRule(_ => PlanTruncation)
    extensions.injectResolutionRule(s => EvolveWrittenColumns(s.asInstanceOf[SparkSession]))
    extensions.injectResolutionRule(s => ReplaceMatchingRows(s.asInstanceOf[SparkSession]))
    extensions.injectResolutionRule(_ => ResolveViewTargets)
    extensions.injectResolutionRule(_ => RefuseChanges)
    extensions.injectResolutionRule(_ => EvolveMergedColumns)
    extensions.injectResolutionRule(s => SaveOverTable(s.asInstanceOf[SparkSession]))
    extensions.injectResolutionRule(ComputeWrittenColumns(_))
    extensions.injectResolutionRule(ComputeChangedColumns(_))
    extensions.injectPostHocResolutionRule(_ => RememberColumns)
    extensions.injectPostHocResolutionRule(s => ReadOneVersion(s.asInstanceOf[SparkSession]))
    extensions.injectPostHocResolutionRule(_ => PlaceValues)
    extensions.injectPostHocResolutionRule(s => StoreSource(s.asInstanceOf[SparkSession]))
    extensions.injectPostHocResolutionRule(s => PruneChangedFiles(s.asInstanceOf[SparkSession]))
    extensions.injectPostHocResolutionRule(_ => CountChanges)
    extensions.injectPostHocResolutionRule(_ => NameReplacedRows)
    extensions.injectPostHocResolutionRule(s => PlanTableLike(s.asInstanceOf[SparkSession]))
    extensions.injectPlanNormalizationRule(_ => AgreeOnNewest)
    extensions.injectPreCBORule(_ => PlanReplacedRows)
    extensions.injectPreCBORule(s => RebalanceWrites(s.asInstanceOf[SparkSession]))
    extensions.injectPlannerStrategy(_ => RecordReads)
    extensions.injectPlannerStrategy(_ => SkipAppliedWrites)
    extensions.injectPlannerStrategy(_ => DescribeJobs)
    extensions.injectPlannerStrategy(_ => EndWholeFiles)
    extensions.injectPlannerStrategy(_ => DeletionVectorStrategy)
    extensions.injectPlannerStrategy(_ => StreamStrategy)
    extensions.injectPlannerStrategy(_ => CountedChangeStrategy)
    TableChangesFunctions.inject(extensions)
  }
}
