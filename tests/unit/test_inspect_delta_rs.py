"""Inspections of tables that delta-rs writes, compared with what delta-rs says about them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaic.commit.clock import wall_clock_ms
from deltaic.inspection.gather import inspect_table

MONTH_MS = 30 * 86_400_000


def rows(start: int, stop: int) -> pa.Table:
    numbers = list(range(start, stop))
    return pa.table({"id": numbers, "p": [f"a b/{i % 3}=%" for i in numbers]})


@pytest.fixture
def written(tmp_path: Path) -> DeltaTable:
    """A table with a history of appends, a DELETE and a compaction."""
    path = tmp_path / "t"
    write_deltalake(path, rows(0, 100), partition_by=["p"])
    for start in (100, 110, 120):
        write_deltalake(path, rows(start, start + 10), mode="append")
    table = DeltaTable(path)
    table.delete("id % 7 = 0")
    table.optimize.compact()
    return table


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_state_is_that_of_delta_rs(has_checkpoint: bool, written: DeltaTable) -> None:
    path = written.table_uri
    if has_checkpoint:
        written.create_checkpoint()
        written.cleanup_metadata()
    write_deltalake(path, rows(200, 201), mode="append")
    written.update_incremental()
    found = inspect_table(path)
    adds = pa.table(written.get_add_actions()).to_pylist()
    assert found.version == written.version()
    assert found.id == str(written.metadata().id)
    assert found.partition_columns == ("p",)
    assert found.files.num_files == len(adds)
    assert found.files.size_bytes == sum(add["size_bytes"] for add in adds)
    assert found.files.num_partitions == len(written.partitions())
    assert found.rows.num_rows == written.to_pyarrow_table().num_rows == written.count()
    assert (found.log.checkpoint is not None) == has_checkpoint
    assert found.files.num_missing_files == 0


def test_unused_files_are_those_of_a_full_vacuum(written: DeltaTable, tmp_path: Path) -> None:
    path = written.table_uri
    (tmp_path / "t" / "orphan.parquet").write_bytes(b"x")
    a_month_later_ms = wall_clock_ms() + MONTH_MS
    theirs = written.vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    found = inspect_table(path, a_month_later_ms)
    assert found.log.num_unused_files == len(set(theirs)) > 0
    assert found.recommendations[0].statement.startswith("VACUUM ")
    assert inspect_table(path).log.num_unused_files == 0
    written.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    after = inspect_table(path, a_month_later_ms)
    assert (after.log.num_unused_files, after.files.num_missing_files) == (0, 0)
