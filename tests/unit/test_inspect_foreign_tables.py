"""Inspections of tables that other engines wrote, compared with delta-spark and with delta-rs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError as DeltaRsError

from deltaic.exceptions import DeltaError
from deltaic.inspection.facts import Inspection
from deltaic.inspection.gather import inspect_table
from deltaic.inspection.render import render
from deltaic.inspection.replay import replay
from deltaic.protocol.features import is_writable
from tests.support import log
from tests.support.paths import shared_folder

SHARED = shared_folder()
TABLES = [] if SHARED is None else sorted((SHARED / "tables" / "tables").iterdir())

#: What is wrong with the logs of tables that delta-spark does not describe, either.
DAMAGED = {
    "DELTA_VERSIONS_NOT_CONTIGUOUS": "DELTAIC_LOG_GAP",
    "DELTA_STATE_RECOVER_ERROR": "DELTAIC_STATE_WITHOUT_",
}
#: Why delta-spark does not describe a table that can be inspected.
NOT_READ = {"DELTA_UNSUPPORTED_FEATURES_FOR_READ", "DELTA_INVALID_PROTOCOL_VERSION"}
#: Statistics of this table are columns of a checkpoint only, which delta-rs does not count by.
STATISTICS_AS_COLUMNS = {"deltars__delta-1.2.1-only-struct-stats"}


def recorded(table: Path, kind: str) -> dict[str, Any]:
    """Return what delta-spark answers; empty if nothing was recorded."""
    assert SHARED is not None
    expected = json.loads((SHARED / "tables" / "expected" / f"{table.name}.json").read_text())
    return next((dict(i["expect"]) for i in expected["items"] if i["kind"] == kind), {})


@cache
def inspected(table: Path) -> Inspection:
    return inspect_table(str(table))


def inspections() -> Iterator[tuple[Path, Inspection]]:
    for table in TABLES:
        try:
            yield table, inspected(table)
        except DeltaError:
            continue


pytestmark = pytest.mark.skipif(SHARED is None, reason="the tables are not on this machine")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_inspection_has_what_delta_spark_describes(table: Path) -> None:
    described = recorded(table, "detail")
    if not described or described["ok"]:
        found = inspected(table)
    else:
        condition = described["error"]["condition"]
        if condition in DAMAGED:
            with pytest.raises(DeltaError, match=DAMAGED[condition]):
                inspected(table)
            return
        assert condition in NOT_READ
        found = inspected(table)
        assert not found.protocol.is_readable
        assert found.protocol.not_readable_because
        assert f"no: {found.protocol.not_readable_because[0]}" in render(found)
    if described.get("ok"):
        result = described["result"]
        assert found.id == result["id"]
        assert found.name == result["name"]
        assert found.description == result["description"]
        assert found.files.num_files == result["numFiles"]
        assert found.files.size_bytes == result["sizeInBytes"]
        assert list(found.partition_columns) == result["partitionColumns"]
        assert list(found.clustering_columns) == result["clusteringColumns"]
        assert found.properties == result["properties"]
        assert found.protocol.min_reader_version == result["minReaderVersion"]
        assert found.protocol.min_writer_version == result["minWriterVersion"]
        assert sorted(f.name for f in found.protocol.features) == sorted(result["tableFeatures"])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_are_those_that_delta_spark_counts(table: Path) -> None:
    counted = recorded(table, "count")
    if not counted.get("ok"):
        return
    rows, files = inspected(table).rows, inspected(table).files
    if files.num_files_without_statistics:
        assert rows.num_rows is None
        assert rows.deleted_rows_ratio is None
    else:
        assert rows.num_rows == counted["result"]["rows"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_files_and_vectors_are_those_of_delta_rs(table: Path) -> None:
    try:
        theirs = DeltaTable(table)
        adds = pa.table(theirs.get_add_actions()).to_pylist()
    except (DeltaRsError, OSError):
        return
    found = inspected(table)
    assert found.version == theirs.version()
    assert found.files.num_files == len(adds)
    assert found.files.size_bytes == sum(add["size_bytes"] for add in adds)
    if table.name not in STATISTICS_AS_COLUMNS:
        counts = [add.get("num_records") for add in adds]
        assert found.rows.num_rows_in_files == sum(count or 0 for count in counts)
        assert found.files.num_files_without_statistics == counts.count(None)
    assert sum(bucket.num_files for bucket in found.files.histogram) == len(adds)
    for bucket in found.files.histogram:
        limit = bucket.max_bytes or 2**63
        sizes = [a["size_bytes"] for a in adds if bucket.min_bytes <= a["size_bytes"] < limit]
        assert (bucket.num_files, bucket.size_bytes) == (len(sizes), sum(sizes))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_deleted_rows_are_those_of_the_commits(table: Path) -> None:
    versions = log.versions(table)
    if versions != list(range(len(versions))):
        return  # Only a checkpoint has the older files.
    try:
        found = inspected(table)
    except DeltaError:
        return
    if "canonicalized-paths" in table.name:
        return  # Two spellings of one path, which the replay of the test suite does not know.
    vectors = [a["deletionVector"] for a in log.active_files(table) if a.get("deletionVector")]
    assert found.rows.num_files_with_deletion_vectors == len(vectors)
    assert found.rows.num_deleted_rows == sum(vector["cardinality"] for vector in vectors)
    assert found.rows.deletion_vector_bytes == sum(vector["sizeInBytes"] for vector in vectors)


def test_corpus_has_every_kind_of_what_is_counted() -> None:
    found = [inspection for _, inspection in inspections()]
    checkpoints = [i.log.checkpoint for i in found if i.log.checkpoint is not None]
    assert {checkpoint.kind for checkpoint in checkpoints} == {"classic", "multi-part", "v2"}
    assert any(checkpoint.num_sidecars > 1 for checkpoint in checkpoints)
    assert any(i.rows.num_deleted_rows for i in found)
    assert any(i.files.num_files_without_statistics for i in found)
    assert any(not i.protocol.is_readable for i in found)
    assert any(i.protocol.is_readable and not i.protocol.is_writable for i in found)
    assert any(i.clustering_columns for i in found)


def test_json_is_the_inspection() -> None:
    for _, inspection in inspections():
        facts = inspection.to_json()
        assert json.loads(json.dumps(facts)) == facts


def test_tables_are_writable_as_the_committer_decides() -> None:
    for table, inspection in inspections():
        found = replay(str(table), table)
        try:
            expected = is_writable(str(table), found.protocol, found.metadata)
        except DeltaError:
            expected = False
        refused = set(inspection.protocol.not_writable_because)
        if inspection.protocol.is_readable and not any(n.startswith("delta.") for n in refused):
            assert inspection.protocol.is_writable == expected, table
