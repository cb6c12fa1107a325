"""Checks a whole log against what the protocol asks of writers.

It knows nothing of how a commit came about: it sees the actions as they are stored, and says what
is wrong with them. The test suite runs it over every log that its tests leave behind; it also
serves to find out which writer broke a table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltaic.exceptions import DeltaError
from deltaic.protocol import clustering, in_commit_timestamps, row_tracking
from deltaic.protocol.actions import (
    READER_VERSION_WITH_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Metadata,
    Protocol,
)
from deltaic.protocol.change_data import feeds_changes
from deltaic.protocol.column_mapping import COLUMN_ID, MAX_COLUMN_ID, PHYSICAL_NAME, is_mapped
from deltaic.protocol.features import (
    features_in_use,
    find_feature,
    is_append_only,
    supports,
    writer_features,
)
from deltaic.protocol.file_columns import (
    column_paths,
    physical_partition_columns,
    strangers_in,
)
from deltaic.protocol.properties import stored_number
from deltaic.protocol.schema import StructType, parse_schema, walk

#: One action as a commit file stores it: its name, and its body.
Action = tuple[str, Mapping[str, Any]]

#: A logical file: its path as the log spells it, and the id of its deletion vector, if it has one.
LogicalFile = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that a commit should not say.

    Attributes
    ----------
    version
        The commit's.
    rule
        What the protocol asks, with its heading.
    detail
        What the commit says instead.
    """

    version: int
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"version {self.version}: {self.detail} ({self.rule})"


def parse_commit(text: str) -> list[Action]:
    """Return the actions of a commit file, in its order; a line may hold several."""
    return [
        (name, body)
        for line in text.split("\n")
        if line.strip()
        for name, body in json.loads(line).items()
    ]


def validate_log(commits: Iterable[tuple[int, Sequence[Action]]]) -> list[Violation]:
    """Return every violation in the commits of a table, given from version 0 on.

    Parameters
    ----------
    commits
        Pairs of version and actions, ascending.
    """
    table = _Table()
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
            # What else is wrong with the commit depends on what cannot be understood.
            violations.append(Violation(version, "Protocol § Actions", str(damage)))
    return violations


@dataclass(slots=True)
class _Table:
    """What the commits seen so far have made."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[LogicalFile, Mapping[str, Any]] = field(default_factory=dict)
    high_water_mark: int = -1
    in_commit_timestamp_ms: int | None = None
    clustered_by: str | None = None
    progress: dict[str, int] = field(default_factory=dict)
    #: The columns that the table has or had; files that are older keep their statistics.
    columns: dict[tuple[str, ...], bool] = field(default_factory=dict)


_Problems = Iterator[tuple[str, str]]


def _problems(table: _Table, version: int, actions: Sequence[Action]) -> _Problems:
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
        yield from _definition_problems(table.protocol, table.metadata)
    yield from _timestamp_problems(table, table.protocol, table.metadata, version, actions)
    yield from _progress_problems(table, actions)
    yield from _domain_problems(table.protocol, actions)
    yield from _statistics_problems(table, table.protocol, table.metadata, actions)
    # What a file's row ids were is asked before its new action takes the place of the older one.
    yield from _row_id_problems(table, table.protocol, table.metadata, version, actions)
    yield from _file_problems(table, table.protocol, table.metadata, actions)
    yield from _change_file_problems(table.protocol, table.metadata, actions)
    yield from _clustering_problems(table, table.protocol, table.metadata, actions)


def _repetitions(actions: Sequence[Action]) -> _Problems:
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
            path, dv_id = _logical_file(body)
            return (name, path, dv_id or "")
        case "cdc":
            return (name, body["path"])
        case _:
            return None


def _definition_problems(protocol: Protocol, metadata: Metadata) -> _Problems:
    rule = "Protocol § Table Features"
    reader, writer = protocol.reader_features, protocol.writer_features
    if (protocol.min_reader_version >= READER_VERSION_WITH_FEATURES) != (reader is not None):
        yield rule, f"reader version {protocol.min_reader_version}, readerFeatures {reader}"
    if (protocol.min_writer_version >= WRITER_VERSION_WITH_FEATURES) != (writer is not None):
        yield rule, f"writer version {protocol.min_writer_version}, writerFeatures {writer}"
    if unlisted := (reader or frozenset()) - (writer or frozenset()):
        yield rule, f"only among the readerFeatures: {', '.join(sorted(unlisted))}"
    for name in sorted(writer or ()):
        feature = find_feature(name)
        reads = feature is not None and feature.reads
        # Below reader version 3 a legacy reader feature is implied by the version, not listed.
        if reads and reader is not None and name not in reader:
            yield rule, f"{name} is not among the readerFeatures"
    try:
        used = features_in_use(metadata, metadata.id)
        columns = parse_schema(metadata.schema_string, metadata.id)
    except DeltaError as invalid:
        yield "Protocol § Schema Serialization Format", str(invalid)
        return
    if unsupported := {name for name in used if not supports(protocol, name)}:
        yield rule, f"in use, but not supported by the protocol: {', '.join(sorted(unsupported))}"
    if row_tracking.is_enabled(metadata) and not row_tracking.names_columns(metadata):
        yield "Protocol § Row Tracking", "the columns of preserved row ids have no names"
    names = {column.name for column in columns.fields}
    if strangers := [c for c in metadata.partition_columns if c not in names]:
        yield "Protocol § Change Metadata", f"partition columns without a column: {strangers}"
    for name in sorted(writer or ()):
        feature = find_feature(name)
        missing = [n for n in (feature.requires if feature else ()) if not supports(protocol, n)]
        if missing:
            yield rule, f"{name} is supported without {', '.join(missing)}"
    if is_mapped(metadata.configuration):
        yield from _mapping_problems(metadata, columns)


def _mapping_problems(metadata: Metadata, columns: StructType) -> _Problems:
    rule = "Protocol § Column Mapping"
    newest = stored_number(metadata.id, metadata.configuration, MAX_COLUMN_ID)
    seen: dict[int, str] = {}
    for path, column in walk(columns):
        number, name = column.metadata.get(COLUMN_ID), column.metadata.get(PHYSICAL_NAME)
        if not isinstance(number, int) or not name:
            yield rule, f"{path} has the id {number!r} and the physical name {name!r}"
        elif number in seen:
            yield rule, f"{path} and {seen[number]} share the id {number}"
        elif number > newest:
            yield rule, f"{path} has the id {number}, but maxColumnId is {newest}"
        seen.setdefault(number or -1, path)


def _clustering_problems(
    table: _Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> _Problems:
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
        counts = _stats(body).get("nullCount")
        for path in paths:
            if not isinstance(_at(counts, path), int):
                yield rule, f"{body['path']} has no statistics of {'.'.join(path)}"


def _at(values: Any, path: Sequence[str]) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _timestamp_problems(
    table: _Table,
    protocol: Protocol,
    metadata: Metadata,
    version: int,
    actions: Sequence[Action],
) -> _Problems:
    rule = "Protocol § In-Commit Timestamps"
    before, table.in_commit_timestamp_ms = table.in_commit_timestamp_ms, None
    if not in_commit_timestamps.is_active(protocol, metadata):
        return
    if not actions or actions[0][0] != "commitInfo":
        yield rule, "the first action is not commitInfo"
        return
    timestamp_ms = actions[0][1].get(in_commit_timestamps.FIELD)
    if timestamp_ms is None:
        yield rule, "commitInfo has no inCommitTimestamp"
        return
    table.in_commit_timestamp_ms = timestamp_ms
    if before is not None and timestamp_ms <= before:
        yield rule, f"{timestamp_ms} is not after {before}"
    since = in_commit_timestamps.enabled_since(metadata, version, timestamp_ms)
    if before is None and version > 0 and since != metadata:
        yield rule, "the metaData that enables them does not say since when"


def _append_only_problems(table: _Table, actions: Sequence[Action]) -> _Problems:
    """Check what a commit removes from the table as it was before the commit."""
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


def _progress_problems(table: _Table, actions: Sequence[Action]) -> _Problems:
    """Check that applications move on.

    What their versions mean is for them to say; but each that is known counts up, and one that
    falls back would have its next batch written twice.
    """
    rule = "Protocol § Transaction Identifiers: the version says how far the application is"
    for name, body in actions:
        if name != "txn":
            continue
        app, now = body["appId"], body.get("version")
        before = table.progress.get(app, -1)
        if not isinstance(now, int):
            yield rule, f"{app} is at {now!r}"
        elif app in table.progress and now <= before:
            yield rule, f"{app} is at {now}, but was at {before}"
        table.progress[app] = now if isinstance(now, int) else before


def _domain_problems(protocol: Protocol, actions: Sequence[Action]) -> _Problems:
    if supports(protocol, "domainMetadata"):
        return
    for name, body in actions:
        if name == "domainMetadata":
            yield (
                "Protocol § Domain Metadata",
                f"it says something of {body['domain']}, but the table does not support domains",
            )


def _statistics_problems(
    table: _Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> _Problems:
    """Check that a file's statistics are about columns of the table.

    A file that was there keeps those of columns that are not there any more.
    """
    columns = column_paths(protocol, metadata)
    table.columns |= columns
    known = {path for path, _ in table.files}
    known |= {body["path"] for name, body in actions if name == "remove"}
    for name, body in actions:
        if name == "add":
            may_name = table.columns if body["path"] in known else columns
            for stranger in strangers_in(_stats(body), may_name):
                yield (
                    "Protocol § Per-file Statistics: of columns of the table",
                    f"{body['path']}: {stranger}",
                )


def _file_problems(
    table: _Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> _Problems:
    rule = "Protocol § Add File and Remove File"
    for name, body in actions:
        if name == "remove" and table.files.pop(_logical_file(body), None) is None:
            yield rule, f"{body['path']} is removed, but is not in the table"
    for name, body in actions:
        if name != "add":
            continue
        yield from _add_problems(protocol, metadata, body)
        if _logical_file(body) in table.files and body.get("dataChange"):
            yield rule, f"{body['path']} is added, but is in the table"
        table.files[_logical_file(body)] = body
    paths = Counter(path for path, _ in table.files)
    for path in {body["path"] for name, body in actions if name == "add"}:
        if paths[path] > 1:
            yield rule, f"{path} is in the table with {paths[path]} deletion vectors"


def _add_problems(protocol: Protocol, metadata: Metadata, add: Mapping[str, Any]) -> _Problems:
    path = add["path"]
    rule = "Protocol § Add File and Remove File"
    values = add.get("partitionValues")
    expected = set(physical_partition_columns(protocol, metadata))
    if not isinstance(values, dict) or set(values) != expected:
        yield rule, f"{path}: partitionValues {values}, partition columns {sorted(expected)}"
    for key, kind in (("size", int), ("modificationTime", int), ("dataChange", bool)):
        if not isinstance(add.get(key), kind):
            yield rule, f"{path}: {key} is {add.get(key)!r}"
    stats = _stats(add)
    num_records = stats.get("numRecords")
    if num_records is not None and (not isinstance(num_records, int) or num_records < 0):
        yield "Protocol § Per-file Statistics", f"{path}: numRecords is {num_records!r}"
    vector = add.get("deletionVector")
    if vector is None:
        return
    rule = "Protocol § Deletion Vectors"
    if "deletionVectors" not in writer_features(protocol):
        yield rule, f"{path} has a deletion vector, but the table does not support them"
    if not isinstance(num_records, int):
        yield rule, f"{path} has a deletion vector, but no numRecords"
    elif not 0 < vector["cardinality"] <= num_records:
        yield rule, f"{path}: {vector['cardinality']} of {num_records} rows are deleted"


def _change_file_problems(
    protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> _Problems:
    rule = "Protocol § Add CDC File"
    expected = set(physical_partition_columns(protocol, metadata))
    for path, body in ((body["path"], body) for name, body in actions if name == "cdc"):
        if not feeds_changes(protocol, metadata):
            yield rule, f"{path}: the table has no change data feed"
        if body.get("dataChange") is not False:
            yield rule, f"{path}: dataChange is {body.get('dataChange')!r}"
        if not isinstance(body.get("size"), int):
            yield rule, f"{path}: size is {body.get('size')!r}"
        if set(body.get("partitionValues") or {}) != expected:
            yield rule, f"{path}: partition columns {sorted(expected)}"
        if not path.startswith("_change_data/"):
            yield "Protocol § Change Data Files", f"{path} is not in the folder _change_data"


def _row_id_problems(
    table: _Table,
    protocol: Protocol,
    metadata: Metadata,
    version: int,
    actions: Sequence[Action],
) -> _Problems:
    """Check row ids, which every new file has once the feature is supported."""
    if not row_tracking.assigns_row_ids(protocol, metadata):
        return
    rule = "Protocol § Row Tracking"
    before = table.high_water_mark
    for name, body in actions:
        if name == "domainMetadata" and body["domain"] == row_tracking.DOMAIN:
            table.high_water_mark = row_tracking.high_water_mark_in(
                metadata.id, body["configuration"]
            )
    if table.high_water_mark < before:
        yield rule, f"the high water mark falls from {before} to {table.high_water_mark}"
    earlier = {path: body for (path, _), body in table.files.items()}
    fresh: list[tuple[int, int, str]] = []
    for name, body in actions:
        if name != "add":
            continue
        first, path = body.get("baseRowId"), body["path"]
        if first is None or body.get("defaultRowCommitVersion") is None:
            yield rule, f"{path} has no baseRowId or defaultRowCommitVersion"
            continue
        if body["defaultRowCommitVersion"] > version:
            yield rule, f"{path}: defaultRowCommitVersion is {body['defaultRowCommitVersion']}"
        given = earlier.get(path, {}).get("baseRowId")
        if given is None:
            fresh.append((first, first + _stats(body).get("numRecords", 0) - 1, path))
        elif first != given:
            yield rule, f"{path}: baseRowId is {first}, but was {given}"
    yield from ((rule, text) for text in _fresh_row_ids(sorted(fresh), before, table))


def _fresh_row_ids(
    ranges: Sequence[tuple[int, int, str]], before: int, table: _Table
) -> Iterator[str]:
    """Say what is wrong with new ranges of ids, given by their first and last ids, ascending."""
    taken, by = before, ""
    for first, last, path in ranges:
        if first <= before:
            yield f"{path}: baseRowId {first} is not above the high water mark {before}"
        elif first <= taken:
            yield f"{path}: row id {first} is in {by}, too"
        if last > table.high_water_mark:
            yield f"{path}: row id {last} is above the high water mark {table.high_water_mark}"
        if last > taken:
            taken, by = last, path


def _stats(add: Mapping[str, Any]) -> Mapping[str, Any]:
    stats = json.loads(add.get("stats") or "{}")
    return stats if isinstance(stats, dict) else {}


def _logical_file(body: Mapping[str, Any]) -> LogicalFile:
    """Return the identity of a file action (Protocol § Action Reconciliation)."""
    vector = body.get("deletionVector")
    if vector is None:
        return body["path"], None
    offset = f"@{vector['offset']}" if vector.get("offset") is not None else ""
    return body["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"
