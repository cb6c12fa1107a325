"""The commitInfo action (Protocol § Commit Provenance Information)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deltaic.commit.current_transaction import CurrentTransaction
from deltaic.commit.metrics import operation_metrics
from deltaic.commit.operations import Operation
from deltaic.commit.ports import CommitSummary
from deltaic.protocol import in_commit_timestamps, row_tracking


@dataclass(frozen=True, slots=True)
class Provenance:
    """The fields of commitInfo that are neither in the commit's files nor in its plan."""

    txn_id: str
    engine_info: str


#: Parameters that delta-spark writes as JSON booleans.
_FLAGS = frozenset(
    {"applyPurge", "auto", "isDynamicPartitionOverwrite", "isFull", "retentionCheckEnabled"}
)
#: Parameters that it writes as JSON numbers.
_NUMBERS = frozenset({"defaultRetentionMillis", "specifiedRetentionMillis"})


def commit_info(
    summary: CommitSummary,
    ours: CurrentTransaction,
    provenance: Provenance,
    *,
    timestamp_ms: int,
    in_commit_timestamp_ms: int | None = None,
) -> dict[str, Any]:
    """Return the action's body, with the fields of delta-spark in its order."""
    body: dict[str, Any] = {}
    if in_commit_timestamp_ms is not None:
        body[in_commit_timestamps.FIELD] = in_commit_timestamp_ms
    body["timestamp"] = timestamp_ms
    user_metadata = summary.operation.options.get("usermetadata")
    if user_metadata is not None:
        body["userMetadata"] = user_metadata
    body["operation"] = summary.operation.kind.value
    body["operationParameters"] = {
        name: _parameter(name, value)
        for name, value in summary.operation.parameters.items()
        if value is not None
    } | _permissions(summary)
    if ours.read_version >= 0:
        body["readVersion"] = ours.read_version
    body["isolationLevel"] = ours.isolation.value
    body["isBlindAppend"] = _is_blind_append(summary, ours)
    body["operationMetrics"] = operation_metrics(summary)
    definition = ours.plan.definition
    if row_tracking.is_enabled(definition.protocol, definition.metadata):
        preserved = "true" if _preserves_row_ids(summary) else "false"
        body["tags"] = {row_tracking.PRESERVED_TAG: preserved}
    body["engineInfo"] = provenance.engine_info
    body["txnId"] = provenance.txn_id
    return body


def _parameter(name: str, value: str) -> Any:
    if name in _FLAGS:
        return value == "true"
    return int(value) if name in _NUMBERS else value


def _permissions(summary: CommitSummary) -> dict[str, bool]:
    """Return which changes of columns the options of a write allow."""
    if summary.operation.kind is not Operation.WRITE:
        return {}
    options = {"mergeschema": "canMergeSchema", "overwriteschema": "canOverwriteSchema"}
    return {
        name: True
        for option, name in options.items()
        if summary.operation.options.get(option, "").strip().casefold() == "true"
    }


def _is_blind_append(summary: CommitSummary, ours: CurrentTransaction) -> bool:
    """Whether the commit only added files and read nothing.

    An append that adds columns is a blind append, although it must not be reordered with others.
    """
    adds_columns = summary.is_blind_append and not summary.identity.high_water_marks
    return ours.is_blind_append or adds_columns or (ours.creates_table and _only_adds(summary))


def _only_adds(summary: CommitSummary) -> bool:
    """Whether a commit that creates a table removes no files."""
    return not summary.reads_whole_table and not summary.files.num_removed


def _preserves_row_ids(summary: CommitSummary) -> bool:
    """Whether each remaining row of the table has kept its row ID.

    A file that only gets a new deletion vector keeps its rows. Rows that an operation copies or
    updates are stored in new files with new base row IDs; only the engine that wrote them knows
    whether it materialized their row IDs.
    """
    counts = summary.engine_metrics
    rearranged = 0 if summary.files.data_change else summary.files.added_rows
    copied = sum(counts.get(name, 0) for name in ("numCopiedRows", "numUpdatedRows"))
    return copied + rearranged <= counts.get("numPreservedRows", 0)
