"""Checks of the file actions in a commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deltaic.protocol import row_tracking
from deltaic.protocol.actions import Metadata, Protocol
from deltaic.protocol.change_data import writes_change_data_feed
from deltaic.protocol.columns.file_columns import (
    column_paths,
    physical_partition_columns,
    unknown_names,
)
from deltaic.protocol.features import writer_features
from deltaic.protocol.validation.log_state import Action, Problems, Table, logical_file, stats_of

#: The operation of tombstones for the files of deletion vectors.
_VECTOR_TOMBSTONES = "Deletion Vector Tombstones"


def statistics_problems(
    table: Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> Problems:
    """Check that a file's statistics are those of columns of the table.

    An existing file keeps the statistics of dropped columns.
    """
    columns = column_paths(protocol, metadata)
    table.columns |= columns
    known = {path for path, _ in table.files}
    known |= {body["path"] for name, body in actions if name == "remove"}
    for name, body in actions:
        if name == "add":
            may_name = table.columns if body["path"] in known else columns
            for unknown in unknown_names(stats_of(body), may_name):
                yield (
                    "Protocol § Per-file Statistics: of columns of the table",
                    f"{body['path']}: {unknown}",
                )


def file_problems(
    table: Table, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> Problems:
    """Check that removed files are in the table, and that added files are not.

    A commit that reverts a compaction removes files whose rows it changes once more: the
    compaction has only moved their rows. If it reverts several, one after the other, it also
    removes the files between them once more, by which others find out. Tombstones of the files of
    deletion vectors, which were never added, keep them while older versions need them.
    """
    rule = "Protocol § Add File and Remove File"
    of_vectors = any(
        name == "commitInfo" and body.get("operation") == _VECTOR_TOMBSTONES
        for name, body in actions
    )
    reverts = any(
        name == "remove" and body.get("dataChange") and logical_file(body) in table.moved
        for name, body in actions
    )
    for name, body in actions:
        if name != "remove":
            continue
        if of_vectors and not body.get("dataChange"):
            continue
        file = logical_file(body)
        was_moved = file in table.moved and reverts
        if table.files.pop(file, None) is None and not was_moved:
            yield rule, f"{body['path']} is removed, but is not in the table"
        (table.moved.discard if body.get("dataChange") else table.moved.add)(file)
    for name, body in actions:
        if name != "add":
            continue
        yield from _add_problems(protocol, metadata, body)
        if logical_file(body) in table.files and body.get("dataChange"):
            yield rule, f"{body['path']} is added, but is in the table"
        table.files[logical_file(body)] = body
        table.moved.discard(logical_file(body))
    paths = Counter(path for path, _ in table.files)
    for path in {body["path"] for name, body in actions if name == "add"}:
        if paths[path] > 1:
            yield rule, f"{path} is in the table with {paths[path]} deletion vectors"


def _add_problems(protocol: Protocol, metadata: Metadata, add: Mapping[str, Any]) -> Problems:
    path = add["path"]
    rule = "Protocol § Add File and Remove File"
    values = add.get("partitionValues")
    expected = set(physical_partition_columns(protocol, metadata))
    if not isinstance(values, dict) or set(values) != expected:
        yield rule, f"{path}: partitionValues {values}, partition columns {sorted(expected)}"
    for key, kind in (("size", int), ("modificationTime", int), ("dataChange", bool)):
        if not isinstance(add.get(key), kind):
            yield rule, f"{path}: {key} is {add.get(key)!r}"
    stats = stats_of(add)
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


def change_file_problems(
    protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> Problems:
    """Check the files of a change data feed."""
    rule = "Protocol § Add CDC File"
    expected = set(physical_partition_columns(protocol, metadata))
    for path, body in ((body["path"], body) for name, body in actions if name == "cdc"):
        if not writes_change_data_feed(protocol, metadata):
            yield rule, f"{path}: the table has no change data feed"
        if body.get("dataChange") is not False:
            yield rule, f"{path}: dataChange is {body.get('dataChange')!r}"
        if not isinstance(body.get("size"), int):
            yield rule, f"{path}: size is {body.get('size')!r}"
        if set(body.get("partitionValues") or {}) != expected:
            yield rule, f"{path}: partition columns {sorted(expected)}"
        if not path.startswith("_change_data/"):
            yield "Protocol § Change Data Files", f"{path} is not in the folder _change_data"


def row_id_problems(
    table: Table,
    protocol: Protocol,
    metadata: Metadata,
    version: int,
    actions: Sequence[Action],
) -> Problems:
    """Check row IDs, which every new file has if the feature is supported."""
    marks = [
        body
        for name, body in actions
        if name == "domainMetadata" and body["domain"] == row_tracking.DOMAIN
    ]
    if any(mark.get("removed") for mark in marks):
        # A table that loses row tracking loses all row IDs, and can begin again.
        table.high_water_mark = -1
        table.base_row_ids.clear()
    if not row_tracking.assigns_row_ids(protocol, metadata):
        return
    rule = "Protocol § Row Tracking"
    before = table.high_water_mark
    for mark in marks:
        if not mark.get("removed"):
            table.high_water_mark = row_tracking.high_water_mark_in(
                metadata.id, mark["configuration"]
            )
    if table.high_water_mark < before:
        yield rule, f"the high water mark falls from {before} to {table.high_water_mark}"
    restores = any(
        name == "commitInfo" and body.get("operation") == "RESTORE" for name, body in actions
    )
    live = {path: body.get("baseRowId") for (path, _), body in table.files.items()}
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
        assigned = live.get(path)
        may_return = restores or (assigned is None and not body.get("dataChange"))
        if may_return and (path, first) in table.base_row_ids:
            continue
        table.base_row_ids.add((path, first))
        if assigned is None:
            fresh.append((first, first + stats_of(body).get("numRecords", 0) - 1, path))
        elif first != assigned:
            yield rule, f"{path}: baseRowId is {first}, but was {assigned}"
    yield from ((rule, detail) for detail in _fresh_row_ids(sorted(fresh), before, table))


def _fresh_row_ids(
    ranges: Sequence[tuple[int, int, str]], before: int, table: Table
) -> Iterator[str]:
    """Yield the problems of new ranges of ids, given by their first and last ids, ascending."""
    taken, by = before, ""
    for first, last, path in ranges:
        if first <= before:
            yield f"{path}: baseRowId {first} is not above the high water mark {before}"
        elif first <= taken:
            yield f"{path}: row ID {first} is in {by}, too"
        if last > table.high_water_mark:
            yield f"{path}: row ID {last} is above the high water mark {table.high_water_mark}"
        if last > taken:
            taken, by = last, path
