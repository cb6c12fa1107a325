"""Nothing is accepted and ignored: which test shows what each property, option and setting does.

Each new one needs a line here: the name of a test file that uses it, or why there is nothing to do.
A property that Deltaic does not support is refused, which is tested here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from deltaic.exceptions import InvalidArgumentError
from deltaic.protocol.properties import TableProperty, all_properties, check_properties
from deltaic.resources import load_json
from tests.support.paths import ROOT


@dataclass(frozen=True, slots=True)
class Shown:
    """By a test that uses it.

    Attributes
    ----------
    by
        The file, below the root of the project.
    word
        By which the file names it, if not by its whole name.
    """

    by: str
    word: str | None = None


@dataclass(frozen=True, slots=True)
class Vacuous:
    """Nothing is left to do for it, whatever it is set to."""

    because: str


#: Refused where a user sets it to anything but a value that asks for nothing.
REFUSED = "refused"

SCALA = "jvm/spark/src/test/scala/io/deltaic/spark"
CORE = "jvm/core/src/test/scala/io/deltaic"

#: Every property of delta-spark 4.4.0 (its ``DeltaConfigs``) and of the parity checklist.
PROPERTIES: dict[str, Shown | Vacuous | str] = {
    "appendOnly": Shown("tests/unit/test_plan_write.py"),
    "autoOptimize": Shown("tests/spark/write/test_file_properties.py"),
    "autoOptimize.autoCompact": Shown("tests/spark/optimize/test_auto_compaction.py"),
    "autoOptimize.optimizeWrite": Shown("tests/spark/write/test_written_files.py"),
    "castIcebergTimeType": REFUSED,
    "checkpoint.writeStatsAsJson": Shown("tests/spark/commit/test_maintenance.py"),
    "checkpoint.writeStatsAsStruct": Shown("tests/spark/commit/test_maintenance.py"),
    "checkpointInterval": Shown("tests/unit/test_hooks.py"),
    "checkpointPolicy": Shown("tests/unit/test_hooks.py"),
    "checkpointRetentionDuration": Shown("tests/unit/test_hooks.py"),
    "columnMapping.maxColumnId": Shown("tests/unit/test_alter_columns.py"),
    "columnMapping.mode": Shown("tests/spark/write/test_column_mapping_writes.py"),
    "compatibility.symlinkFormatManifest.enabled": Shown("tests/peers/test_symlink_manifests.py"),
    "coordinatedCommits.commitCoordinator-preview": REFUSED,
    "coordinatedCommits.commitCoordinatorConf-preview": REFUSED,
    "coordinatedCommits.tableConf-preview": REFUSED,
    "dataSkippingNumIndexedCols": Shown("tests/spark/write/test_write_statistics.py"),
    "dataSkippingStatsColumns": Shown("tests/spark/write/test_write_statistics.py"),
    "dataSkippingStringPrefixLength": Shown("tests/spark/write/test_file_properties.py"),
    "deletedFileRetentionDuration": Shown(f"{CORE}/replay/TombstonesSuite.scala"),
    "dropFeatureTruncateHistory.retentionDuration": Shown("tests/unit/test_drop_reader_feature.py"),
    "enableChangeDataCapture": Shown("tests/spark/changes/test_change_feed_writes.py"),
    "deltaic.deletionVectors.maxDeletedRowsRatio": Shown(
        "tests/spark/rowlevel/test_heavily_deleted_files.py"
    ),
    "enableChangeDataFeed": Shown("tests/spark/changes/test_change_feed_writes.py"),
    "enableDeletionVectors": Shown("tests/spark/write/test_file_properties.py"),
    "enableExpiredLogCleanup": Shown("tests/unit/test_hooks.py"),
    "enableFullRetentionRollback": Vacuous(
        "all that is within the retention can be gone back to, also where less is asked for"
    ),
    "enableIcebergCompatV1": Shown(
        "tests/spark/write/test_file_properties.py", "enableIcebergCompat"
    ),
    "enableIcebergCompatV2": Shown(
        "tests/spark/write/test_file_properties.py", "enableIcebergCompat"
    ),
    "enableIcebergCompatV3": Shown("tests/peers/test_iceberg_compat.py"),
    "enableIcebergWriterCompatV1": Shown("tests/unit/test_plan_write.py"),  # refused as a feature
    "enableInCommitTimestamps": Shown("tests/peers/test_writer_features.py"),
    "enableMaterializePartitionColumnsFeature": Shown("tests/spark/write/test_file_properties.py"),
    "enableRowTracking": Shown("tests/peers/test_row_ids.py"),
    "enableTypeWidening": Shown("tests/peers/test_write_types.py"),
    "enableVariantShredding": Shown("tests/spark/write/test_variant_shredding.py"),
    "ignoreIcebergBucketPartition": REFUSED,
    "ignoreProtocolDefaults": Shown("tests/unit/test_negotiation.py"),
    "inCommitTimestampEnablementTimestamp": Shown("tests/unit/test_plan_write.py"),
    "inCommitTimestampEnablementVersion": Shown("tests/unit/test_plan_write.py"),
    "isolationLevel": Shown("tests/unit/test_transaction.py"),
    "logRetentionDuration": Shown("tests/unit/test_hooks.py"),
    "minReaderVersion": Shown("tests/unit/test_negotiation.py"),
    "minWriterVersion": Shown("tests/unit/test_negotiation.py"),
    "parquet.format.version": Shown("tests/spark/write/test_file_properties.py"),
    "randomPrefixLength": Shown("tests/spark/rowlevel/test_delete_files.py"),
    "randomizeFilePrefixes": Shown("tests/spark/rowlevel/test_delete_files.py"),
    "redirectReaderWriter-preview": REFUSED,
    "redirectWriterOnly-preview": REFUSED,
    "requireCheckpointProtectionBeforeVersion": Shown("tests/peers/test_checkpoint_protection.py"),
    "rowTracking.materializedRowCommitVersionColumnName": Shown(
        f"{SCALA}/schema/MalformedSchemaSuite.scala"
    ),
    "rowTracking.materializedRowIdColumnName": Shown("tests/unit/test_alter_properties.py"),
    "rowTrackingSuspended": Shown("tests/conflicts/test_rebase.py"),
    "sampleRetentionDuration": Vacuous("samples are kept by nobody, so none is kept too long"),
    "setTransactionRetentionDuration": Shown("tests/spark/write/test_writer_options.py"),
    "universalFormat.enabledFormats": REFUSED,
    "universalFormat.iceberg.atomicConversion.supported": Vacuous(
        "it is about metadata of Iceberg, which no table has that is written by Deltaic"
    ),
    "writePartitionColumnsToParquet": Shown("tests/spark/write/test_file_properties.py"),
}

#: Every option of the parity checklist, and those that delta-spark 4.4.0 knows besides.
OPTIONS: dict[str, Shown | Vacuous] = {
    "allowSourceColumnDrop": Shown("tests/spark/stream/test_schema_tracking.py"),
    "allowSourceColumnRename": Shown("tests/spark/stream/test_schema_tracking.py"),
    "allowSourceColumnTypeChange": Shown("tests/spark/stream/test_schema_tracking.py"),
    "checkpointLocation": Shown("tests/spark/stream/test_stream_reads.py"),
    "compression": Shown("tests/spark/write/test_write_modes.py"),
    "dataChange": Shown("tests/peers/test_write_entries.py"),
    "endingTimestamp": Shown("tests/spark/changes/test_change_feed.py"),
    "endingVersion": Shown("tests/spark/changes/test_change_feed.py"),
    "excludeRegex": Shown("tests/spark/stream/test_stream_reads.py"),
    "failOnDataLoss": Shown("tests/spark/stream/test_stream_refusals.py"),
    "ignoreChanges": Shown("tests/spark/stream/test_stream_refusals.py"),
    "ignoreDeletes": Shown("tests/spark/stream/test_stream_refusals.py"),
    "ignoreFileDeletion": Shown("tests/spark/stream/test_stream_refusals.py"),
    "maxBytesPerTrigger": Shown("tests/spark/stream/test_stream_reads.py"),
    "maxFilesPerTrigger": Shown("tests/spark/stream/test_stream_reads.py"),
    "maxRecordsPerFile": Shown("tests/spark/write/test_write_statements.py"),
    "mergeSchema": Shown("tests/spark/write/test_schema_evolution.py"),
    "optimizeWrite": Shown("tests/spark/write/test_written_files.py"),
    "overwriteSchema": Shown("tests/spark/write/test_write_modes.py"),
    "parquet.writer.version": Shown("tests/spark/write/test_file_properties.py"),
    "partitionOverwriteMode": Shown("tests/spark/write/test_write_modes.py"),
    "path": Shown("tests/spark/catalog/test_paths.py"),
    "paths": Shown("tests/spark/catalog/test_paths.py", "load(["),
    "queryName": Vacuous("Spark's writer of streams keeps it to itself"),
    "readChangeData": Shown("tests/spark/changes/test_change_feed.py"),
    "readChangeFeed": Shown("tests/spark/changes/test_change_feed.py"),
    "replaceOn": Shown("tests/spark/write/test_replace_where.py"),
    "replaceUsing": Shown("tests/spark/write/test_replace_where.py"),
    "replaceWhere": Shown("tests/spark/write/test_replace_where.py"),
    "schemaLocation": Shown("tests/spark/stream/test_schema_tracking.py"),
    "schemaTrackingLocation": Shown("tests/peers/test_stream_schema_tracking.py"),
    "skipChangeCommits": Shown("tests/spark/stream/test_stream_refusals.py"),
    "startingTimestamp": Shown("tests/spark/changes/test_change_feed.py"),
    "startingVersion": Shown("tests/spark/changes/test_change_feed.py"),
    "streamingSourceTrackingId": Shown("tests/spark/stream/test_schema_log.py"),
    "targetAlias": Shown("tests/spark/write/test_replace_where.py"),
    "timestampAsOf": Shown("tests/spark/catalog/test_time_travel.py"),
    "txnAppId": Shown("tests/spark/write/test_writer_options.py"),
    "txnVersion": Shown("tests/spark/write/test_writer_options.py"),
    "userMetadata": Shown("tests/spark/commit/test_write_commits.py"),
    "versionAsOf": Shown("tests/spark/write/test_write_modes.py"),
}

#: Every setting of settings.json; a word stands for its older name, or for what differs in it.
SETTINGS: dict[str, Shown] = {
    "allowArbitraryProperties.enabled": Shown("tests/spark/write/test_session_options.py"),
    "alterLocation.bypassSchemaCheck": Shown("tests/spark/catalog/test_alter_table.py"),
    "changeDataFeed.defaultSchemaModeForColumnMappingTable": Shown(
        "tests/spark/changes/test_change_feed_refusals.py", "defaultSchemaMode"
    ),
    "changeDataFeed.timestampOutOfRange.enabled": Shown("tests/spark/changes/test_change_feed.py"),
    "changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled": Shown(
        "tests/spark/changes/test_change_feed_refusals.py", "unsafeBatchRead"
    ),
    "checkpoint.partSize": Shown("tests/spark/commit/test_maintenance.py"),
    "checksum.enabled": Shown(
        "tests/spark/commit/test_maintenance.py", "writeChecksumFile.enabled"
    ),
    "commitInfo.userMetadata": Shown("tests/spark/write/test_session_options.py"),
    "constraints.assumesDropIfExists.enabled": Shown("tests/spark/write/test_constraints.py"),
    "convert.distributed.minDirectories": Shown("tests/spark/convert/test_cluster.py"),
    "convert.partitionValues.ignoreCastFailure": Shown("tests/spark/convert/test_partitions.py"),
    "convert.useCatalogPartitions": Shown("tests/spark/convert/test_catalog.py"),
    "convert.useCatalogSchema": Shown("tests/spark/convert/test_catalog.py"),
    "convert.useMetadataLog": Shown("tests/spark/convert/test_convert.py"),
    "createEmptySchemaTable.enabled": Shown("tests/peers/test_columnless_tables.py"),
    "deletionVectors.maxInlineBytes": Shown("tests/spark/write/test_written_files.py"),
    "deletionVectors.maxDeletedRowsRatio": Shown(
        "tests/spark/rowlevel/test_heavily_deleted_files.py"
    ),
    "deletionVectors.maxFileBytes": Shown("tests/spark/write/test_written_files.py"),
    "deletionVectors.maxBitmapMergeBytes": Shown("tests/spark/rowlevel/test_merged_bitmaps.py"),
    "deletionVectors.minDeletedBytes": Shown("tests/spark/rowlevel/test_heavily_deleted_files.py"),
    "firstQuery.loadClasses": Shown("tests/spark/session/test_first_query_classes.py"),
    "isolationLevel": Shown("tests/spark/commit/test_isolation_levels.py"),
    "joinPruning.minBytes": Shown("tests/spark/scan/test_scan_at_run_time.py", "minBytes"),
    "joinPruning.minFiles": Shown("tests/spark/scan/test_scan_at_run_time.py", "minFiles"),
    "logCompaction.interval": Shown("tests/spark/commit/test_maintenance.py"),
    "logStore.<scheme>.impl": Shown(f"{CORE}/log/LogStoreSuite.scala", "logStore.other.impl"),
    "maxCommitAttempts": Shown("tests/spark/commit/test_write_commits.py"),
    "merge.repartitionBeforeWrite.enabled": Shown("tests/spark/write/test_written_files.py"),
    "optimizeWrite.binSize": Shown("tests/spark/write/test_file_properties.py"),
    "optimizeWrite.enabled": Shown("tests/spark/write/test_written_files.py"),
    "properties.defaults.<name>": Shown(
        "tests/spark/write/test_file_properties.py", "properties.defaults."
    ),
    "replaceWhere.constraintCheck.enabled": Shown(
        "tests/spark/write/test_replace_where.py", "constraintCheck"
    ),
    "replaceWhere.dataColumns.enabled": Shown("tests/spark/write/test_session_options.py"),
    "tableFeatures.fastDropFeature.enabled": Shown("tests/peers/test_dropped_features.py"),
    "restore.protocolDowngradeAllowed": Shown("tests/spark/restore/test_restore.py"),
    "rowLevel.keyPruning.maxBroadcastBytes": Shown("tests/spark/rowlevel/test_merge_keys.py"),
    "rowLevel.keyPruning.maxSourceBytes": Shown("tests/spark/rowlevel/test_merge_plans.py"),
    "merge.materializeSource.minTableBytes": Shown(
        "tests/spark/rowlevel/test_materialized_merge_sources.py"
    ),
    "autoCompact.enabled": Shown("tests/spark/optimize/test_auto_compaction.py"),
    "autoCompact.maxFileSize": Shown("tests/spark/optimize/test_auto_compaction.py"),
    "autoCompact.minFileSize": Shown("tests/spark/optimize/test_auto_compaction.py"),
    "autoCompact.minNumFiles": Shown("tests/spark/optimize/test_auto_compaction.py"),
    "clusteredWrite.enabled": Shown("tests/spark/write/test_clustered_write.py"),
    "optimize.batchSize": Shown("tests/spark/optimize/test_batches.py"),
    "optimize.maxDecodedFileSize": Shown("tests/spark/optimize/test_optimize.py"),
    "optimize.maxDeletedRowsRatio": Shown("tests/spark/optimize/test_optimize.py"),
    "optimize.maxFileSize": Shown("tests/spark/optimize/test_optimize.py"),
    "optimize.maxThreads": Shown("tests/spark/optimize/test_batches.py"),
    "optimize.minFileSize": Shown("tests/spark/optimize/test_optimize.py"),
    "optimize.minTaskSize": Shown("tests/spark/optimize/test_optimize.py"),
    "optimize.clustering.maxWriteAmplification": Shown("tests/spark/optimize/test_clustering.py"),
    "optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize": Shown(
        "tests/spark/optimize/test_clustering.py", "targetCubeSize"
    ),
    "optimize.clustering.mergeStrategy.minCubeSize.threshold": Shown(
        "tests/spark/optimize/test_clustering.py", "minCubeSize"
    ),
    "optimize.zorder.checkStatsCollection.enabled": Shown("tests/spark/optimize/test_z_order.py"),
    "schema.autoMerge.enabled": Shown("tests/spark/write/test_schema_evolution.py"),
    "snapshot.distributedThresholdBytes": Shown("tests/spark/scan/test_distributed_snapshot.py"),
    "streaming.allowSchemaLocationOutsideCheckpointLocation": Shown(
        "tests/spark/stream/test_schema_log.py"
    ),
    "streaming.allowSourceColumn<Kind>": Shown(
        "tests/spark/stream/test_schema_tracking.py", "streaming.{kinds[0]}"
    ),
    "typeWidening.allowAutomaticWidening": Shown("tests/peers/test_automatic_widening.py"),
    "maintenance.background": Shown("tests/spark/commit/test_maintenance.py"),
    "retentionDurationCheck.enabled": Shown(
        "tests/spark/vacuum/test_vacuum.py", "retentionDurationCheck.enabled"
    ),
    "vacuum.distributed.minDirectories": Shown("tests/spark/vacuum/test_vacuum.py"),
    "vacuum.keepFilesOfShallowClones.enabled": Shown("tests/spark/clone/test_shallow_clone.py"),
    "vacuum.logging.enabled": Shown("tests/spark/vacuum/test_vacuum.py"),
    "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": Shown(
        "tests/spark/catalog/test_time_travel.py"
    ),
    "write.txnAppId": Shown("tests/spark/write/test_session_options.py", "txnAppId"),
    "write.txnVersion": Shown("tests/spark/write/test_session_options.py", "txnVersion"),
    "write.txnVersion.autoReset.enabled": Shown(
        "tests/spark/write/test_session_options.py", "autoReset"
    ),
}


def require_shown(name: str, promise: Shown | Vacuous | str) -> None:
    if isinstance(promise, Shown):
        text = (ROOT / promise.by).read_text(encoding="utf-8")
        # Tests of Python may give properties and options by keywords.
        spellings = {promise.word or name, (promise.word or name).replace(".", "__")}
        assert any(word in text for word in spellings), f"{promise.by} does not use {name}"
    elif isinstance(promise, Vacuous):
        assert promise.because


def test_every_property_is_in_the_list_and_no_other() -> None:
    known = {known.name.removeprefix("delta.") for known in all_properties()}
    assert known == PROPERTIES.keys()


@pytest.mark.parametrize("known", all_properties(), ids=lambda known: known.name)
def test_each_property_is_done_or_refused(known: TableProperty) -> None:
    promise = PROPERTIES[known.name.removeprefix("delta.")]
    require_shown(known.name.removeprefix("delta."), promise)
    assert (promise == REFUSED) is not known.supported
    if promise != REFUSED:
        return
    asked = "true" if known.type == "boolean" else "x"
    with pytest.raises(InvalidArgumentError, match=re.escape(known.name)) as caught:
        check_properties("/t", {known.name: asked})
    assert caught.value.condition == "DELTAIC_UNSUPPORTED_TABLE_PROPERTY"
    assert known.instead in str(caught.value)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_is_done_or_refused(name: str) -> None:
    require_shown(name, OPTIONS[name])


def test_every_option_that_the_engine_reads_is_in_the_list() -> None:
    """By the ways in which Scala reads them: from a map of options, by a name in quotes."""
    read = re.compile(
        r"""(?:options|ignoringCase|option|read)(?:\.(?:get|contains|containsKey|getOrElse|flag|value|text|getBoolean))?"""
        r"""\(\s*"([A-Za-z.]+)\""""
    )
    found = {
        name
        for path in (ROOT / "jvm/spark/src/main/scala").rglob("*.scala")
        for name in read.findall(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 10, found
    known = {name.casefold() for name in OPTIONS}
    actions = {"metaData", "protocol"}  # which are read alike
    assert {name for name in found if name.casefold() not in known} <= actions


def test_every_setting_of_the_guide_is_in_the_list_and_no_other() -> None:
    assert documented("settings.json", "spark.deltaic.") == SETTINGS.keys()


def test_every_option_of_the_guide_is_in_the_list_and_no_other() -> None:
    assert documented("options.json", "") == OPTIONS.keys()


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_is_done(name: str) -> None:
    require_shown(name, SETTINGS[name])


def documented(resource: str, prefix: str) -> set[str]:
    """Return the names, without a prefix, that the guide lists from a resource."""
    names = (
        record[key]
        for record in load_json(resource)
        for key in ("name", "otherName")
        if key in record
    )
    return {name.removeprefix(prefix) for name in names}
