"""Operation metrics, derived from a commit's files and the engine's own counts.

The names are those of delta-spark, per operation. A metric that does not apply is zero, as in
delta-spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deltaic.commit.operations import Operation
from deltaic.commit.ports import CommitSummary, FileCounts

_Source = Callable[[CommitSummary], int]


def operation_metrics(summary: CommitSummary) -> dict[str, str]:
    """Return the metrics of a commit for commitInfo, where all values are strings."""
    kind = _kind(summary.operation.kind)
    metrics = {name: str(source(summary)) for name, source in _BY_OPERATION.get(kind, {}).items()}
    replaces_rows = kind is Operation.WRITE and "numDeletedRows" in summary.engine_metrics
    if replaces_rows or _overwrites(summary):
        metrics["numRemovedFiles"] = str(summary.files.num_removed)
        metrics["numRemovedBytes"] = str(summary.files.removed_bytes)
    if replaces_rows:
        metrics |= {name: str(source(summary)) for name, source in _REPLACED_ROWS.items()}
    return metrics


def _overwrites(summary: CommitSummary) -> bool:
    """Whether a write is an overwrite, even of an empty table."""
    mode = summary.operation.parameters.get("mode") or ""
    says_so = summary.operation.kind.replaces_table or mode.casefold() == "overwrite"
    return summary.operation.kind.writes_a_query and (says_so or summary.files.num_removed > 0)


def _kind(operation: Operation) -> Operation:
    """Map the operations that write a query to WRITE, and those of REORG to OPTIMIZE."""
    if operation.writes_a_query:
        return Operation.WRITE
    reorganizes = operation in (Operation.REORG, Operation.UPGRADE_UNIFORM)
    return Operation.OPTIMIZE if reorganizes else operation


def _files(read: Callable[[FileCounts], int]) -> _Source:
    return lambda summary: read(summary.files)


def _engine(name: str) -> _Source:
    return lambda summary: summary.engine_metrics.get(name, 0)


_DELETION_VECTORS: Mapping[str, _Source] = {
    "DeletionVectorsAdded": _files(lambda f: f.num_deletion_vectors_added),
    "DeletionVectorsRemoved": _files(lambda f: f.num_deletion_vectors_removed),
    "DeletionVectorsUpdated": _files(lambda f: f.num_deletion_vectors_updated),
}
_TIMES: Mapping[str, _Source] = {
    "executionTimeMs": _engine("executionTimeMs"),
    "scanTimeMs": _engine("scanTimeMs"),
    "rewriteTimeMs": _engine("rewriteTimeMs"),
}
#: Metrics of a write with replaceWhere.
_REPLACED_ROWS: Mapping[str, _Source] = {
    "numAddedChangeFiles": _files(lambda f: f.num_change_files),
    "numDeletedRows": _engine("numDeletedRows"),
    "numCopiedRows": _engine("numCopiedRows"),
}
_DELETE: Mapping[str, _Source] = {
    "numAddedFiles": _files(lambda f: f.num_added),
    "numRemovedFiles": _files(lambda f: f.num_removed),
    "numAddedBytes": _files(lambda f: f.added_bytes),
    "numRemovedBytes": _files(lambda f: f.removed_bytes),
    **{f"num{name}": source for name, source in _DELETION_VECTORS.items()},
    "numAddedChangeFiles": _files(lambda f: f.num_change_files),
    "numDeletedRows": _engine("numDeletedRows"),
    "numCopiedRows": _engine("numCopiedRows"),
    **_TIMES,
}
_UPDATE: Mapping[str, _Source] = {
    **{name: source for name, source in _DELETE.items() if name != "numDeletedRows"},
    "numUpdatedRows": _engine("numUpdatedRows"),
}


def _matched_updated(summary: CommitSummary) -> int:
    """Count the matched updated rows: all updated rows, unless the engine counts them apart."""
    counts = summary.engine_metrics
    return counts.get("numMatchedUpdatedRows", counts.get("numUpdatedRows", 0))


def _matched_deleted(summary: CommitSummary) -> int:
    """Count rows, not pairs: several source rows may delete the same row, and Spark counts each."""
    counts = summary.engine_metrics
    return counts.get("numDeletedRows", 0) - counts.get("numNotMatchedBySourceDeletedRows", 0)


def _inserted(summary: CommitSummary) -> int:
    """Count the rows that a MERGE inserted; the engine runs an insert-only MERGE as an append."""
    return summary.engine_metrics.get("numInsertedRows", summary.files.added_rows)


def _output_rows(summary: CommitSummary) -> int:
    counts = summary.engine_metrics
    return _inserted(summary) + counts.get("numUpdatedRows", 0) + counts.get("numCopiedRows", 0)


_MERGE: Mapping[str, _Source] = {
    "numSourceRows": _engine("numSourceRows"),
    "numTargetRowsInserted": _inserted,
    "numTargetRowsUpdated": _engine("numUpdatedRows"),
    "numTargetRowsMatchedUpdated": _matched_updated,
    "numTargetRowsNotMatchedBySourceUpdated": _engine("numNotMatchedBySourceUpdatedRows"),
    "numTargetRowsDeleted": _engine("numDeletedRows"),
    "numTargetRowsMatchedDeleted": _matched_deleted,
    "numTargetRowsNotMatchedBySourceDeleted": _engine("numNotMatchedBySourceDeletedRows"),
    "numTargetRowsCopied": _engine("numCopiedRows"),
    "numTargetBytesAdded": _files(lambda f: f.added_bytes),
    "numTargetBytesRemoved": _files(lambda f: f.removed_bytes),
    "numTargetFilesAdded": _files(lambda f: f.num_added),
    "numTargetFilesRemoved": _files(lambda f: f.num_removed),
    "numTargetChangeFilesAdded": _files(lambda f: f.num_change_files),
    **{f"numTarget{name}": source for name, source in _DELETION_VECTORS.items()},
    "numOutputRows": _output_rows,
    "materializeSourceTimeMs": _engine("materializeSourceTimeMs"),
    **_TIMES,
}
_BY_OPERATION: Mapping[Operation, Mapping[str, _Source]] = {
    Operation.WRITE: {
        "numFiles": _files(lambda f: f.num_added),
        "numOutputBytes": _files(lambda f: f.added_bytes),
        "numOutputRows": _files(lambda f: f.added_rows),
    },
    Operation.STREAMING_UPDATE: {
        "numAddedFiles": _files(lambda f: f.num_added),
        "numRemovedFiles": _files(lambda f: f.num_removed),
        "numOutputRows": _files(lambda f: f.added_rows),
        "numOutputBytes": _files(lambda f: f.added_bytes),
    },
    Operation.DELETE: _DELETE,
    Operation.UPDATE: _UPDATE,
    Operation.MERGE: _MERGE,
    Operation.TRUNCATE: {
        "numRemovedFiles": _files(lambda f: f.num_removed),
        "executionTimeMs": _engine("executionTimeMs"),
    },
    Operation.CONVERT: {"numConvertedFiles": _files(lambda f: f.num_added)},
    Operation.RESTORE: {
        name: _engine(name)
        for name in (
            "tableSizeAfterRestore",
            "numOfFilesAfterRestore",
            "numRemovedFiles",
            "numRestoredFiles",
            "removedFilesSize",
            "restoredFilesSize",
        )
    },
    Operation.CLONE: {
        name: _engine(name)
        for name in (
            "sourceTableSize",
            "sourceNumOfFiles",
            "numRemovedFiles",
            "numCopiedFiles",
            "removedFilesSize",
            "copiedFilesSize",
        )
    },
    Operation.VACUUM_START: {
        name: _engine(name) for name in ("numFilesToDelete", "sizeOfDataToDelete")
    },
    Operation.VACUUM_END: {
        name: _engine(name) for name in ("numDeletedFiles", "numVacuumedDirectories")
    },
    Operation.OPTIMIZE: {
        "numAddedFiles": _files(lambda f: f.num_added),
        "numRemovedFiles": _files(lambda f: f.num_removed),
        "numAddedBytes": _files(lambda f: f.added_bytes),
        "numRemovedBytes": _files(lambda f: f.removed_bytes),
        "numDeletionVectorsRemoved": _files(lambda f: f.num_deletion_vectors_removed),
        **{
            name: _engine(name)
            for name in ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
        },
    },
}
