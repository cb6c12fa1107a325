"""Checks a whole log against the protocol's requirements on writers.

It only uses the stored actions, and reports what is wrong with them. The test suite checks every
log that its tests write; ``python -m deltaic validate`` finds out which writer corrupted a table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltaic.exceptions import DeltaError
from deltaic.protocol import in_commit_timestamps
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.columns import clustering
from deltaic.protocol.features import is_append_only, supports
from deltaic.protocol.properties import interval_ms, property_value
from deltaic.protocol.validation.definition import definition_problems
from deltaic.protocol.validation.files import (
    change_file_problems,
    file_problems,
    row_id_problems,
    statistics_problems,
)
from deltaic.protocol.validation.log_state import Action, Problems, Table, logical_file, stats_of


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of the protocol by a commit.

    Attributes
    ----------
    version
        The version of the commit.
    rule
        The rule of the protocol, with its heading.
    detail
        How the commit violates it.
    """

    version: int
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"version {self.version}: {self.detail} ({self.rule})"


def parse_commit(text: str) -> list[Action]:
    """Return the actions of a commit file, in order; a line may hold several.

    Raises
    ------
    ValueError
        If a line is not a JSON object; the message names the line.
    """
    actions: list[Action] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            body = json.loads(line)
        except ValueError as problem:
            raise ValueError(f"line {number}: {problem}") from problem
        if not isinstance(body, dict):
            raise ValueError(f"line {number} is not a JSON object")
        actions += body.items()
    return actions


def validate_log(commits: Iterable[tuple[int, Sequence[Action]]]) -> list[Violation]:
    """Return every violation in the commits of a table, from version 0.

    Parameters
    ----------
    commits
        Pairs of version and actions, ascending.
    """
    table = Table()
    violations: list[Violation] = []
    expected = 0
    for version, actions in commits:
        if version != expected:
            violations.append(
                Violation(
                    version,
                    "Protocol § Delta Log Entries: versions are contiguous",
                    f"it follows version {expected - 1}",
                )
            )
        expected = version + 1
        try:
            for rule, detail in _problems(table, version, actions):
                violations.append(Violation(version, rule, detail))
        except DeltaError as damage:
            # Other checks of the commit depend on the part that cannot be parsed.
            violations.append(Violation(version, "Protocol § Actions", str(damage)))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as damage:
            detail = f"an action lacks a field, or has a value of another type: {damage!r}"
            violations.append(Violation(version, "Protocol § Actions", detail))
    return violations


def _problems(table: Table, version: int, actions: Sequence[Action]) -> Problems:
    yield from _repetitions(actions)
    yield from _append_only_problems(table, actions)
    for name, body in actions:
        if name == "protocol":
            table.protocol = Protocol.from_json(body)
        elif name == "metaData":
            table.metadata = Metadata.from_json(body)
    if table.protocol is None or table.metadata is None:
        yield (
            "Protocol § Action Reconciliation: a table has a protocol and a metaData action",
            "there is no " + ("protocol" if table.protocol is None else "metaData"),
        )
        return
    if any(name in ("protocol", "metaData") for name, _ in actions):
        yield from definition_problems(table.protocol, table.metadata)
    yield from _timestamp_problems(table, table.protocol, table.metadata, version, actions)
    yield from _progress_problems(table, actions)
    yield from _domain_problems(table.protocol, actions)
    yield from statistics_problems(table, table.protocol, table.metadata, actions)
    # Checked before file_problems replaces the older action of a file, which has its row IDs.
    yield from row_id_problems(table, table.protocol, table.metadata, version, actions)
    yield from file_problems(table, table.protocol, table.metadata, actions)
    yield from change_file_problems(table.protocol, table.metadata, actions)
    yield from _clustering_problems(table, table.protocol, table.metadata, actions)


def _repetitions(actions: Sequence[Action]) -> Problems:
    keys = Counter(_key(name, body) for name, body in actions)
    for key, times in keys.items():
        if key is not None and times > 1:
            what = " ".join(part for part in key if part)
            yield (
                "Protocol § Actions: a commit holds no two actions that say the same",
                f"{times} actions {what}",
            )


def _key(name: str, body: Mapping[str, Any]) -> tuple[str, ...] | None:
    match name:
        case "protocol" | "metaData" | "commitInfo":
            return (name,)
        case "txn":
            return (name, body["appId"])
        case "domainMetadata":
            return (name, body["domain"])
        case "add" | "remove":
            path, dv_id = logical_file(body)
            return (name, path, dv_id or "")
        case "cdc":
            return (name, body["path"])
        case _:
            return None


def _clustering_problems(
    table: Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> Problems:
    if not supports(protocol, clustering.FEATURE):
        return
    rule = "Protocol § Clustered Table"
    for name, body in actions:
        if name == "domainMetadata" and body["domain"] == clustering.DOMAIN:
            table.clustered_by = None if body["removed"] else body["configuration"]
    if table.clustered_by is None:
        yield rule, "nothing says by which columns the table is clustered"
        return
    if metadata.partition_columns:
        yield rule, f"it is partitioned by {list(metadata.partition_columns)}, too"
    paths = clustering.physical_paths(metadata.id, table.clustered_by)
    for name, body in actions:
        if name != "add" or not body["dataChange"] or body.get("deletionVector") is not None:
            continue
        counts = stats_of(body).get("nullCount")
        for path in paths:
            if not isinstance(_at(counts, path), int):
                yield rule, f"{body['path']} has no statistics of {'.'.join(path)}"


def _at(values: Any, path: Sequence[str]) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _timestamp_problems(
    table: Table,
    protocol: Protocol,
    metadata: Metadata,
    version: int,
    actions: Sequence[Action],
) -> Problems:
    rule = "Protocol § In-Commit Timestamps"
    before, table.in_commit_timestamp_ms = table.in_commit_timestamp_ms, None
    if not in_commit_timestamps.is_active(protocol, metadata):
        return
    if not actions or actions[0][0] != "commitInfo":
        yield rule, "the first action is not commitInfo"
        return
    info = actions[0][1]
    timestamp_ms = info.get(in_commit_timestamps.FIELD) if isinstance(info, Mapping) else None
    if timestamp_ms is None:
        yield rule, "commitInfo has no inCommitTimestamp"
        return
    table.in_commit_timestamp_ms = timestamp_ms
    if before is not None and timestamp_ms <= before:
        yield rule, f"{timestamp_ms} is not after {before}"
    since = in_commit_timestamps.enabled_since(metadata, version, timestamp_ms)
    if before is None and version > 0 and since != metadata:
        yield rule, "the metaData that enables them does not say since when"


def _append_only_problems(table: Table, actions: Sequence[Action]) -> Problems:
    """Check that a commit removes no rows if the table was append-only before it."""
    if table.protocol is None or table.metadata is None:
        return
    if not is_append_only(table.protocol, table.metadata):
        return
    for name, body in actions:
        if name == "remove" and body.get("dataChange"):
            yield (
                "Protocol § Append-only Tables",
                f"{body['path']} is removed with rows that count",
            )


def _progress_problems(table: Table, actions: Sequence[Action]) -> Problems:
    """Check that the ``txn`` versions of each application increase.

    Applications define what their versions mean. The known ones increase their versions, and after
    a lower version, the next batch would be written twice. Expired ``txn`` actions are ignored.
    """
    rule = "Protocol § Transaction Identifiers: the version says how far the application is"
    for name, body in actions:
        if name != "txn":
            continue
        app, now = body["appId"], body.get("version")
        before, expired = table.progress.get(app, -1), _is_expired(table, body)
        if not isinstance(now, int) or not -(2**63) <= now < 2**63:
            yield rule, f"{app} is at {now!r}"
        elif app in table.progress and now <= before and not expired:
            yield rule, f"{app} is at {now}, but was at {before}"
        table.progress[app] = now if isinstance(now, int) else before
        table.progress_ms[app] = body.get("lastUpdated")


def _is_expired(table: Table, body: Mapping[str, Any]) -> bool:
    """Whether the ``txn`` action before `body` has expired by the table's retention."""
    properties = table.metadata.configuration if table.metadata else {}
    retention_ms = interval_ms(property_value(properties, "delta.setTransactionRetentionDuration"))
    before_ms, now_ms = table.progress_ms.get(body["appId"]), body.get("lastUpdated")
    if retention_ms is None or before_ms is None or now_ms is None:
        return False
    return bool(now_ms - before_ms >= retention_ms)


def _domain_problems(protocol: Protocol, actions: Sequence[Action]) -> Problems:
    if supports(protocol, "domainMetadata"):
        return
    for name, body in actions:
        if name == "domainMetadata":
            yield (
                "Protocol § Domain Metadata",
                f"it says something of {body['domain']}, but the table does not support domains",
            )
