"""What an inspection finds out about tables made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from deltaic.exceptions import DeltaError
from deltaic.inspection.facts import Inspection
from deltaic.inspection.gather import inspect_table
from deltaic.inspection.render import render
from tests.support.checkpoint import FORMS, write_checkpoint
from tests.support.inspected import (
    DAY_MS,
    NOW_MS,
    add,
    append,
    make_table,
    metadata,
    protocol,
    remove,
    store,
    vector,
)
from tests.support.log import commit_path

MB = 1024**2
DV = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory whose logs the test suite does not validate: some are damaged."""
    with TemporaryDirectory() as path:
        yield Path(path)


def inspect(table: str | Path) -> Inspection:
    return inspect_table(str(table), NOW_MS)


def statements(inspection: Inspection) -> list[str]:
    return [recommendation.statement for recommendation in inspection.recommendations]


def test_table_without_files(folder: Path) -> None:
    found = inspect(make_table(folder / "t"))
    assert (found.version, found.num_columns, found.warnings) == (0, 1, ())
    assert (found.files.num_files, found.files.largest_bytes) == (0, None)
    assert (found.rows.num_rows, found.rows.deleted_rows_ratio) == (0, 0.0)
    assert found.log.num_unused_files == 0
    assert render(found).endswith("What to run\n  nothing\n")


def test_table_whose_files_are_all_removed(folder: Path) -> None:
    table = make_table(folder / "t", add("a"))
    append(table, remove("a", 1))
    found = inspect(table)
    assert (found.files.num_files, found.log.num_tombstones) == (0, 1)
    assert found.recommendations == ()


@pytest.mark.parametrize("schema_string", [None, '{"type":"struct","fields":[]}'])
def test_table_without_columns(schema_string: str | None, folder: Path) -> None:
    definition = metadata(schemaString=schema_string)
    found = inspect(make_table(folder / "t", definition=(protocol(), definition)))
    assert (found.num_columns, found.protocol.is_writable, found.warnings) == (0, True, ())


@pytest.mark.parametrize("name", ["a b", "a#%41", "ü`é", "a'\"$x", "p=1", "a\nb", "  a"])
def test_path_with_special_characters(name: str, folder: Path) -> None:
    table = make_table(folder / name, add("f%20%25.parquet"), add("g.parquet"), add("h.parquet"))
    append(table, remove("g.parquet", 8))
    for file in ("f %.parquet", "g.parquet", "h.parquet"):
        store(table, file, days_ago=9)
    for location in (table, Path(table).as_uri()):
        found = inspect(location)
        assert (found.path, found.files.num_missing_files) == (table, 0)
        assert found.log.num_unused_files == 1
        assert statements(found) == [f"VACUUM delta.`{table.replace('`', '``')}`"]
    assert f"  path                {table}\n" in render(found) or "\n" in name


@pytest.mark.parametrize("form", [None, *FORMS])
def test_state_is_the_same_from_every_kind_of_checkpoint(form: str | None, folder: Path) -> None:
    protocols = protocol(3, 7, readerFeatures=["v2Checkpoint"], writerFeatures=["v2Checkpoint"])
    files = [add(f"{i}", size=i * MB, rows=i) for i in range(6)]
    table = make_table(folder / "t", *files, definition=(protocols, metadata()))
    append(table, remove("1", 1), add("1", size=7, rows=10, **vector(3)))
    expected = inspect(table)
    assert (expected.rows.num_rows, expected.rows.num_deleted_rows) == (21, 3)
    if form is None:
        return
    write_checkpoint(table, form)
    for version in (0, 1):
        commit_path(table, version).unlink()
    append_at(table, 2, add("z", size=5, rows=None))
    found = inspect(table)
    assert found.files.num_files == expected.files.num_files + 1
    assert found.files.size_bytes == expected.files.size_bytes + 5
    assert found.rows.num_rows_in_files == expected.rows.num_rows_in_files
    assert found.rows.num_deleted_rows == 3
    assert found.log.checkpoint is not None
    kind = {"classic": "classic", "parts": "multi-part"}.get(form, "v2")
    assert (found.log.checkpoint.kind, found.log.checkpoint.version) == (kind, 1)
    assert found.log.checkpoint.num_parts == (2 if form == "parts" else 1)
    assert found.log.checkpoint.num_sidecars == (2 if "sidecars" in form else 0)
    assert (found.log.num_commits, found.log.num_commits_since_checkpoint) == (1, 1)


def append_at(table: str, version: int, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    commit_path(table, version).write_text(text)


@pytest.mark.parametrize("damage", ["truncated", "empty", "other rows"])
def test_damaged_checkpoint_is_skipped_with_a_warning(damage: str, folder: Path) -> None:
    table = make_table(folder / "t", add("a"), add("b"))
    append(table, add("c"))
    [checkpoint] = write_checkpoint(table)
    contents = {"truncated": checkpoint.read_bytes()[:-9], "empty": b"", "other rows": b"PAR1"}
    checkpoint.write_bytes(contents[damage])
    found = inspect(table)
    assert (found.files.num_files, found.log.checkpoint) == (3, None)
    assert checkpoint.name in found.warnings[0]
    commit_path(table, 0).unlink()
    with pytest.raises(DeltaError, match="DELTAIC_CHECKPOINT_UNREADABLE"):
        inspect(table)


def test_checkpoint_without_one_of_its_sidecars_is_skipped(folder: Path) -> None:
    table = make_table(folder / "t", add("a"), add("b"))
    _, sidecar, _ = write_checkpoint(table, "json-sidecars")
    sidecar.unlink()
    found = inspect(table)
    assert (found.files.num_files, found.log.checkpoint) == (2, None)
    assert sidecar.name in found.warnings[0]


def test_checkpoint_without_one_of_its_parts_is_not_used(folder: Path) -> None:
    table = make_table(folder / "t", add("a"), add("b"))
    part, _ = write_checkpoint(table, "parts")
    part.unlink()
    found = inspect(table)
    assert (found.files.num_files, found.log.checkpoint) == (2, None)
    assert "1 checkpoint in several parts is not complete" in found.warnings


@pytest.mark.parametrize("metadata_version", [0, 1, None])
def test_uuid_named_checkpoint_says_its_version(metadata_version: int | None, folder: Path) -> None:
    table = make_table(folder / "t", add("a"))
    actions = [protocol(), metadata(), add("a"), add("b")]
    if metadata_version is not None:
        actions.append({"checkpointMetadata": {"version": metadata_version}})
    name = f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    Path(table, "_delta_log", name).write_text(lines)
    found = inspect(table)
    if metadata_version == 0:
        assert found.log.checkpoint is not None
        assert (found.log.checkpoint.kind, found.log.checkpoint.num_sidecars) == ("v2", 0)
        assert found.files.num_files == 2
    else:
        assert (found.log.checkpoint, found.files.num_files) == (None, 1)
        assert name in found.warnings[0]


def test_file_that_is_added_again_is_not_removed(folder: Path) -> None:
    table = make_table(folder / "t", add("a"))
    append(table, remove("a", 8))
    append(table, add("a"))
    found = inspect(table)
    assert (found.files.num_files, found.log.num_tombstones) == (1, 0)


def test_buckets_contain_their_lower_limit(folder: Path) -> None:
    limits = [0, *(16 * 1024 * 4**i for i in range(8)), 1024 * MB]
    files = [add(f"{i}", limit) for i, limit in enumerate(limits)]
    found = inspect(make_table(folder / "t", *files)).files
    buckets = [(b.min_bytes, b.max_bytes, b.num_files, b.size_bytes) for b in found.histogram]
    upper = [*limits[1:], None]
    assert buckets == [(low, up, 1, low) for low, up in zip(limits, upper, strict=True)]


def test_deleted_rows_are_those_of_the_current_vectors(folder: Path) -> None:
    table = make_table(
        folder / "t", add("a", 1000, 10), add("b", 1000, 90), definition=(DV, metadata())
    )
    append(table, remove("a", 1), add("a", 1000, 10, **vector(2)))
    append(table, remove("a", 1, **vector(2)), add("a", 1000, 10, **vector(4, size=500)))
    found = inspect(table)
    assert (found.files.num_files, found.files.size_bytes) == (2, 2000)
    assert (found.rows.num_rows, found.rows.num_rows_in_files) == (96, 100)
    assert (found.rows.num_deleted_rows, found.rows.deleted_rows_ratio) == (4, 0.04)
    assert found.rows.num_files_with_deletion_vectors == 1
    assert found.rows.num_files_over_deleted_rows_ratio == 1
    assert (found.rows.deletion_vector_bytes, found.rows.deletion_vector_bytes_ratio) == (500, 0.2)
    assert found.recommendations == ()


def test_files_of_vectors_are_needed(folder: Path) -> None:
    table = make_table(folder / "t", add("a", **vector(1)), definition=(DV, metadata()))
    # The protocol's example of a derived path (Protocol § Deletion Vector Descriptor Schema).
    file = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    for name in ("a", file, "ab/deletion_vector_00000000-0000-0000-0000-000000000000.bin"):
        store(table, name, days_ago=30)
    assert inspect(table).log.num_unused_files == 1
    Path(table, file).unlink()
    found = inspect(table)
    assert (found.log.num_unused_files, found.files.num_missing_files) == (1, 1)
    assert file in found.warnings[0]


def test_unused_files_are_those_that_vacuum_deletes(folder: Path) -> None:
    definition = (protocol(), metadata("_p"))
    table = make_table(folder / "t", add("_p=1/a"), add("b"), add("c"), definition=definition)
    append(table, remove("b", 8), remove("c", 6))
    store(table, "orphan", size=5, days_ago=8)
    for name in ("_p=1/a", "b", "c", "_hidden", ".hidden", "_other/x", "_delta_log/y"):
        store(table, name, days_ago=9)
    store(table, "_p=1/b", size=7, days_ago=9)
    store(table, "_change_data/cdc", size=11, days_ago=9)
    store(table, "new", days_ago=1)
    found = inspect(table)
    # b, orphan, _p=1/b and _change_data/cdc
    assert (found.log.num_unused_files, found.log.unused_files_size_bytes) == (4, 1 + 5 + 7 + 11)
    assert (found.log.num_tombstones, found.log.num_expired_tombstones) == (2, 1)
    assert statements(found) == [f"VACUUM delta.`{table}`"]


@pytest.mark.parametrize(
    ("properties", "unused"),
    [
        ({}, 1),
        ({"delta.enableIcebergCompatV2": "true"}, 0),
        ({"delta.universalFormat.enabledFormats": "iceberg"}, 0),
    ],
)
def test_metadata_of_iceberg_is_not_unused(
    properties: dict[str, str], unused: int, folder: Path
) -> None:
    definition = (protocol(), metadata(configuration=properties))
    table = make_table(folder / "t", definition=definition)
    store(table, "metadata/v1.metadata.json", days_ago=9)
    assert inspect(table).log.num_unused_files == unused


def test_copy_of_a_log_says_nothing_about_stored_files(folder: Path) -> None:
    table = make_table(folder / "t", add("a"), add("b"))
    append(table, remove("b", 8))
    found = inspect(table)
    assert (found.log.num_unused_files, found.files.num_missing_files) == (None, None)
    assert "copy of the log" in found.warnings[0]
    assert statements(found) == [f"VACUUM delta.`{table}`"]
    assert "may still exist" in found.recommendations[0].reason


def test_retention_is_that_of_the_table(folder: Path) -> None:
    properties = {"delta.deletedFileRetentionDuration": "interval 10 days"}
    table = make_table(
        folder / "t", add("a"), definition=(protocol(), metadata(configuration=properties))
    )
    store(table, "a")
    store(table, "b", days_ago=9)
    assert inspect(table).log.deleted_file_retention_ms == 10 * DAY_MS
    assert inspect(table).log.num_unused_files == 0
    store(table, "b", days_ago=11)
    assert inspect(table).log.num_unused_files == 1


@pytest.mark.parametrize("number", [49, 50])
def test_optimize_is_recommended_for_many_small_files_of_a_partition(
    number: int, folder: Path
) -> None:
    definition = (protocol(), metadata("p"))
    several = [add(f"s{i}", 64 * MB - 1, partitionValues={"p": str(i % 2)}) for i in range(number)]
    alone = [add(f"a{i}", partitionValues={"p": f"a{i}"}) for i in range(99)]
    large = [add(f"l{i}", 64 * MB, partitionValues={"p": "0"}) for i in range(99)]
    table = make_table(folder / "t", *several, *alone, *large, definition=definition)
    found = inspect(table)
    assert (found.files.num_small_files, found.files.num_partitions) == (number + 99, 101)
    assert found.files.num_files_to_compact == number
    assert found.files.num_partitions_with_small_files == 2
    assert statements(found) == ([] if number < 50 else [f"OPTIMIZE delta.`{table}`"])


def test_files_are_small_by_the_target_of_the_table(folder: Path) -> None:
    definition = (protocol(), metadata(configuration={"delta.targetFileSize": "32mb"}))
    table = make_table(
        folder / "t", add("a", 16 * MB), add("b", 16 * MB - 1), definition=definition
    )
    found = inspect(table)
    assert (found.files.small_file_bytes, found.files.num_small_files) == (16 * MB, 1)


@pytest.mark.parametrize(("deleted", "expected"), [(5, []), (6, ["REORG TABLE {} APPLY (PURGE)"])])
def test_reorg_is_recommended_for_deleted_rows(
    deleted: int, expected: list[str], folder: Path
) -> None:
    files = add("a", rows=100, **vector(deleted))
    table = make_table(folder / "t", files, definition=(DV, metadata()))
    assert statements(inspect(table)) == [s.format(f"delta.`{table}`") for s in expected]


@pytest.mark.parametrize(("number", "is_worth_it"), [(1, False), (2, True)])
def test_optimize_is_recommended_for_files_without_statistics(
    number: int, is_worth_it: bool, folder: Path
) -> None:
    size, gigabyte = 64 * MB, 1024 * MB
    files = [add(f"{i}", size, rows=None if i < number else 1) for i in range(8)]
    large = [add(f"l{i}", gigabyte, rows=None) for i in range(3)]
    alone = add("a", rows=None, partitionValues={"p": "1"})
    table = make_table(folder / "t", *files, *large, alone, definition=(protocol(), metadata("p")))
    found = inspect(table)
    assert found.files.num_files_without_statistics == number + 4
    assert found.files.num_files_to_compact_without_statistics == number
    assert statements(found) == [f"OPTIMIZE delta.`{table}`"] * is_worth_it


def test_directory_that_cannot_be_listed_is_a_warning(folder: Path) -> None:
    table = make_table(folder / "t", add("a"))
    Path(table, "loop").symlink_to("loop")
    store(table, "a")
    found = inspect(table)
    assert (found.files.num_files, found.log.num_unused_files) == (1, None)
    assert found.warnings[0].startswith("the files of the table cannot be listed: ")


def test_one_optimize_is_enough_for_small_files_and_deleted_rows(folder: Path) -> None:
    files = [add(f"{i}", rows=10, **vector(i % 4)) for i in range(50)]
    table = make_table(folder / "t", *files, definition=(DV, metadata()))
    found = inspect(table)
    assert statements(found) == [f"OPTIMIZE delta.`{table}`"]
    assert "50 files" in found.recommendations[0].reason
    assert "14.6 % of the rows" in found.recommendations[0].reason


def test_checkpoint_is_recommended_after_two_intervals(folder: Path) -> None:
    table = make_table(folder / "t")
    for _ in range(19):
        append(table, {"txn": {"appId": "a", "version": 1}})
    assert inspect(table).recommendations == ()
    append(table)
    [recommendation] = inspect(table).recommendations
    assert recommendation.statement == f"VACUUM delta.`{table}`"
    assert "21 commits and there is no checkpoint" in recommendation.reason
    write_checkpoint(table)
    found = inspect(table)
    assert (found.recommendations, found.log.num_transactions) == ((), 0)


def test_statements_name_what_deltaic_does_not_support(folder: Path) -> None:
    features = ["collations", "deletionVectors", "somethingNew"]
    reads = ["deletionVectors", "somethingNew"]
    definition = (protocol(3, 7, readerFeatures=reads, writerFeatures=features), metadata())
    table = make_table(folder / "t", add("a", rows=10, **vector(5)), definition=definition)
    found = inspect(table)
    assert found.rows.num_rows == 5
    assert found.protocol.not_readable_because == ("somethingNew",)
    assert found.protocol.not_writable_because == ("somethingNew", "collations")
    assert {f.name: (f.is_readable, f.is_writable) for f in found.protocol.features} == {
        "collations": (True, False),
        "deletionVectors": (True, True),
        "somethingNew": (False, False),
    }
    assert found.recommendations[0].reason.endswith(
        "(with an engine that supports somethingNew, as Deltaic does not)"
    )
    text = render(found)
    assert "read by Deltaic     no: somethingNew\n" in text
    assert "somethingNew        reader and writer feature, NOT SUPPORTED\n" in text


def test_time_of_a_version_is_its_in_commit_timestamp(folder: Path) -> None:
    definition = (
        protocol(1, 7, writerFeatures=["inCommitTimestamp"]),
        metadata(configuration={"delta.enableInCommitTimestamps": "true"}),
    )
    info = {"inCommitTimestamp": 1234, "operation": "WRITE", "engineInfo": "hand"}
    table = make_table(folder / "t", {"commitInfo": info}, definition=definition)
    found = inspect(table)
    assert (found.timestamp_ms, found.operation, found.engine) == (1234, "WRITE", "hand")


def test_staged_commits_are_named(folder: Path) -> None:
    table = make_table(folder / "t")
    name = f"{1:020d}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    store(table, f"_delta_log/_staged_commits/{name}")
    store(table, f"_delta_log/_staged_commits/{name.replace('1.', '0.')}")
    [warning] = inspect(table).warnings
    assert warning.endswith(f": _staged_commits/{name}")


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"add": {"path": "a", "partitionValues": {}}}, "no 'size'"),
        (add("a", size="1"), "'1' is not a whole number"),  # type: ignore[arg-type]
        (add("a", deletionVector={"storageType": "u"}), "no 'sizeInBytes'|no 'pathOrInlineDv'"),
        ({"remove": {"deletionTimestamp": 1}}, "no 'path'"),
        ({"metaData": {"schemaString": "{}"}}, "no 'id'"),
        (metadata("p", partitionColumns=[1]), "1 is not a string"),
        ({"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}}, "'1' is not a whole"),
        ({"add": [1]}, "malformed"),
        ({"domainMetadata": {"configuration": "{}"}}, "no 'domain'"),
    ],
)
def test_malformed_action_is_an_error_with_its_line(
    action: dict[str, Any], reason: str, folder: Path
) -> None:
    table = make_table(folder / "t")
    append(table, add("x"), action)
    with pytest.raises(DeltaError, match=rf"Version 1 .*{1:020d}\.json, line 2: .*({reason})"):
        inspect(table)


@pytest.mark.parametrize(
    "action", [{"add": None, "txn": None}, {"unknown": 1}, add("y", stats="{")]
)
def test_action_that_says_nothing_is_accepted(action: dict[str, Any], folder: Path) -> None:
    table = make_table(folder / "t", add("x"))
    append(table, action)
    append(table)
    assert inspect(table).files.num_files - ("path" in str(action)) == 1


def test_values_of_properties_may_be_other_than_strings(folder: Path) -> None:
    properties = {"delta.checkpointInterval": 5, "delta.appendOnly": True, "x": None}
    table = make_table(folder / "t", definition=(protocol(), metadata(configuration=properties)))
    found = inspect(table)
    assert found.properties == {"delta.appendOnly": "true", "delta.checkpointInterval": "5"}
    assert found.log.checkpoint_interval == 5


def test_partition_values_may_be_other_than_strings(folder: Path) -> None:
    values = [1, "1", True, None, {"a": 1}, "x"]
    files = [add(str(i), partitionValues={"p": value}) for i, value in enumerate(values)]
    table = make_table(folder / "t", *files, definition=(protocol(), metadata("p")))
    assert inspect(table).files.num_partitions == 5


def test_unreadable_parts_of_a_definition_are_warnings(folder: Path) -> None:
    properties = {"delta.logRetentionDuration": "soon", "delta.checkpointInterval": "x"}
    definition = metadata(configuration=properties, schemaString="{", createdTime=10**18)
    table = make_table(folder / "t", definition=(protocol(), definition))
    found = inspect(table)
    assert (found.log.log_retention_ms, found.log.checkpoint_interval) == (None, None)
    assert (found.num_columns, found.protocol.is_writable) == (None, False)
    assert len(found.warnings) == 2
    assert "'soon'" in render(found)
    assert "DELTAIC_INVALID_SCHEMA" in render(found)


def test_text_of_a_log_does_not_break_lines(folder: Path) -> None:
    definition = metadata(name="a\nb\x1b[2J\ud800", description="x\ty", configuration={"k\n": "v"})
    text = render(inspect(make_table(folder / "t", definition=(protocol(), definition))))
    assert r"  name                a b\u001b[2J\ud800" + "\n" in text
    assert "  k                   v\n" in text


def test_missing_commits_are_errors(folder: Path) -> None:
    table = make_table(folder / "t", add("a"))
    for i in range(4):
        append(table, add(str(i)))
    commit_path(table, 2).unlink()
    with pytest.raises(DeltaError, match="version 2 is missing between versions 1 and 3"):
        inspect(table)
    for version in (0, 1):
        commit_path(table, version).unlink()
    with pytest.raises(DeltaError, match=r"DELTAIC_LOG_INCOMPLETE.*begins with commit 3"):
        inspect(table)
