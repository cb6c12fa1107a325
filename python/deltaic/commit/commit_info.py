"""The commitInfo action: who did what, and how (Protocol § Commit Provenance Information)."""

from __future__ import annotations

from typing import Any

from deltaic.commit.metrics import operation_metrics
from deltaic.commit.ports import CommitSummary
from deltaic.commit.read_set import ReadSet


def commit_info(
    summary: CommitSummary, ours: ReadSet, *, timestamp_ms: int, txn_id: str, engine_info: str
) -> dict[str, Any]:
    """Return the action's body; fields and their order are those of delta-spark."""
    body: dict[str, Any] = {"timestamp": timestamp_ms}
    user_metadata = summary.options.get("usermetadata")
    if user_metadata is not None:
        body["userMetadata"] = user_metadata
    body["operation"] = summary.operation
    body["operationParameters"] = {
        name: value for name, value in summary.operation_parameters.items() if value is not None
    }
    if summary.read_version >= 0:
        body["readVersion"] = summary.read_version
    body["isolationLevel"] = ours.isolation.value
    body["isBlindAppend"] = ours.is_blind_append or (ours.creates_table and _only_adds(summary))
    body["operationMetrics"] = operation_metrics(summary)
    body["engineInfo"] = engine_info
    body["txnId"] = txn_id
    return body


def _only_adds(summary: CommitSummary) -> bool:
    """Whether a commit that creates a table added files, or none, and removed none."""
    return not summary.reads_whole_table and not summary.files.num_removed
