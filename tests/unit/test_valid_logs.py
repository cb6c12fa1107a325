"""The check that tests run on every log finds errors in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.definitions import schema
from tests.support.log import write_commit
from tests.support.valid_logs import require_valid_logs

METADATA: dict[str, Any] = {
    "id": "t",
    "format": {"provider": "parquet"},
    "schemaString": schema("id"),
    "partitionColumns": [],
    "configuration": {},
}


def action(engine: str, path: str) -> list[dict[str, Any]]:
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1}
    stats = json.dumps({"numRecords": 1})
    return [
        {"commitInfo": {"engineInfo": engine}},
        {"add": {**add, "dataChange": True, "stats": stats}},
    ]


def table(folder: Path, *columns: str) -> Path:
    """Make a table of one column with a file of these columns."""
    path = folder / "table"
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({name: [1] for name in columns}), path / "a.parquet")
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    write_commit(
        path, 0, {"protocol": protocol}, {"metaData": METADATA}, *action("Deltaic/1", "a.parquet")
    )
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of which nothing but this test asks whether its logs are valid."""
    with TemporaryDirectory() as path:
        yield Path(path)


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-1")
@pytest.mark.protocol("writer-row-tracking-25", "writer-row-tracking-30")
def test_column_of_a_file_that_the_schema_does_not_have_is_found(folder: Path) -> None:
    table(folder / "right", "id")
    require_valid_logs(folder)
    table(folder / "wrong", "id", "other")
    with pytest.raises(AssertionError, match=r"a\.parquet: other"):
        require_valid_logs(folder)


@pytest.mark.protocol("requirements-for-writers-data-files-1")
def test_our_commits_are_checked_beside_those_of_others(folder: Path) -> None:
    path = table(folder, "id")
    for version, engine in ((1, "Somebody"), (2, "Somebody")):
        write_commit(path, version, *action(engine, "again"))
    require_valid_logs(folder)
    write_commit(path, 3, *action("Deltaic/1", "again"))
    with pytest.raises(AssertionError, match="version 3: again is added, but is in the table"):
        require_valid_logs(folder)


def moves(removed: list[str], added: list[str], *, ours: str | None = None) -> list[dict[str, Any]]:
    """Return a commit that moves rows, and, with `ours`, changes those of a file."""
    entry: dict[str, Any] = {"partitionValues": {}, "size": 1, "modificationTime": 1}
    entry |= {"stats": json.dumps({"numRecords": 1}), "dataChange": False}
    removes = [{"remove": {"path": path, "dataChange": path == ours}} for path in removed]
    return [
        {"commitInfo": {"engineInfo": "Deltaic/1"}},
        *removes,
        *({"add": {**entry, "path": path}} for path in added),
    ]


@pytest.mark.parametrize("reverts", [True, False])
def test_only_a_commit_that_reverts_compactions_removes_a_file_that_is_gone(
    folder: Path, reverts: bool
) -> None:
    """The file `x` of the first compaction was compacted to `y`."""
    path = table(folder, "id")
    name = "a.parquet"
    for other in ("x", "y", "z"):
        (path / other).write_bytes((path / name).read_bytes())
    write_commit(path, 1, *moves([name], ["x"]))
    write_commit(path, 2, *moves(["x"], ["y"]))
    removed = [name, "x", "y"] if reverts else ["x", "y"]
    write_commit(path, 3, *moves(removed, ["z"], ours=name))
    if reverts:
        require_valid_logs(folder)
    else:
        with pytest.raises(AssertionError, match="x is removed, but is not in the table"):
            require_valid_logs(folder)
