"""What DELETE writes: which files it removes, keeps under a deletion vector, or rewrites."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import DELETION_VECTORS, Row, build_table, in_order, rows_of

SCHEMA = "id BIGINT, p STRING"

#: A bitmap of a few rows takes tens of bytes and goes into the log; of every third of these rows,
#: kilobytes, and goes into a file.
LARGE = 5_000


def numbered(start: int, count: int, p: str = "a") -> list[Row]:
    return [(i, p) for i in range(start, start + count)]


def delete(spark: SparkSession, table: str, condition: str) -> int:
    """Delete and return the newest version."""
    DeltaTable.forPath(spark, table).delete(condition)
    return log.newest(table)


def only(actions: list[log.Action]) -> log.Action:
    assert len(actions) == 1, actions
    return actions[0]


def test_delete_of_some_rows_keeps_the_file_under_a_vector(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10), numbered(10, 10)])
    before = log.active_files(table)
    data_files = log.files_in(table, ".parquet")
    version = delete(spark, table, "id IN (3, 5)")

    removed, added = (
        only(log.actions(table, version, "remove")),
        only(log.actions(table, version, "add")),
    )
    [old] = [add for add in before if log.statistics(add)["maxValues"]["id"] == 9]
    assert removed["path"] == added["path"] == old["path"]
    assert removed["dataChange"] is added["dataChange"] is True
    assert "deletionVector" not in removed
    assert added["deletionVector"]["cardinality"] == 2
    assert (added["size"], added["partitionValues"]) == (old["size"], old["partitionValues"])
    assert log.files_in(table, ".parquet") == data_files, "a data file was written"


@pytest.mark.protocol("per-file-statistics-1", "per-file-statistics-2")
@pytest.mark.protocol("writer-requirement-for-deletion-vectors-1")
def test_statistics_with_a_deletion_vector_have_loose_bounds_and_count_physical_rows(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10)])
    assert log.statistics(only(log.active_files(table)))["tightBounds"] is True
    delete(spark, table, "id >= 7")
    stats = log.statistics(only(log.active_files(table)))
    assert stats["tightBounds"] is False
    assert stats["numRecords"] == 10
    assert stats["minValues"]["id"] == 0
    assert stats["maxValues"]["id"] == 9
    assert spark.sql(f"SELECT max(id), count(*) FROM delta.`{table}`").first() == (6, 7)


def test_delete_of_all_rows_of_a_file_removes_it_without_an_add(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10), numbered(10, 10)])
    version = delete(spark, table, "id BETWEEN 10 AND 19")
    assert log.statistics(only(log.actions(table, version, "remove")))["minValues"]["id"] == 10
    assert log.actions(table, version, "add") == []
    assert rows_of(spark, table) == in_order(numbered(0, 10))


def test_delete_of_a_partition_removes_its_files_and_touches_no_other(
    spark: SparkSession, table: str
) -> None:
    files = [numbered(0, 5, "a") + numbered(5, 5, "b"), numbered(10, 5, "b")]
    build_table(spark, table, SCHEMA, files, partition_by=["p"])
    version = delete(spark, table, "p = 'b'")
    removed = log.actions(table, version, "remove")
    assert [r["partitionValues"] for r in removed] == [{"p": "b"}, {"p": "b"}]
    assert log.actions(table, version, "add") == []
    assert rows_of(spark, table) == in_order(numbered(0, 5, "a"))


@pytest.mark.protocol("dv-step-2-reading-the-current-state-1", "dv-step-3-dml-with-existing-dvs-1")
@pytest.mark.protocol("dv-step-3-dml-with-existing-dvs-2", "dv-step-3-dml-with-existing-dvs-3")
@pytest.mark.parametrize(
    ("first", "second"),
    [("id < 3", "id = 8"), ("id % 3 = 0", "id % 3 = 1"), ("id < 3", "id % 3 = 1")],
    ids=["inline then inline", "stored then stored", "inline then stored"],
)
def test_second_delete_on_a_file_replaces_its_vector_by_the_union(
    spark: SparkSession, table: str, first: str, second: str
) -> None:
    rows = numbered(0, LARGE)
    build_table(spark, table, SCHEMA, [rows])
    delete(spark, table, first)
    earlier = only(log.active_files(table))
    version = delete(spark, table, second)

    removed = only(log.actions(table, version, "remove"))
    added = only(log.actions(table, version, "add"))
    left = [r for r in rows if not eval(first.replace("=", "=="), {"id": r[0]})]
    left = [r for r in left if not eval(second.replace("=", "=="), {"id": r[0]})]
    assert log.dv_id(removed) == log.dv_id(earlier)
    assert removed["deletionVector"] == earlier["deletionVector"]
    assert log.dv_id(added) != log.dv_id(earlier)
    assert added["deletionVector"]["cardinality"] == LARGE - len(left)
    assert rows_of(spark, table) == in_order(left)


@pytest.mark.protocol("dv-step-3-dml-with-existing-dvs-3")
def test_delete_of_the_rows_that_a_vector_left_removes_the_file(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10), numbered(10, 2)])
    delete(spark, table, "id < 4")
    [earlier] = [add for add in log.active_files(table) if log.dv_id(add)]
    version = delete(spark, table, "id < 10")
    removed = only(log.actions(table, version, "remove"))
    assert (removed["path"], log.dv_id(removed)) == (earlier["path"], log.dv_id(earlier))
    assert log.actions(table, version, "add") == []
    assert rows_of(spark, table) == in_order(numbered(10, 2))


def test_delete_of_rows_that_are_deleted_already_commits_nothing(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10)])
    version = delete(spark, table, "id < 4")
    assert delete(spark, table, "id < 4") == version


@pytest.mark.protocol("dv-non-functional-2")
def test_tiny_vectors_go_into_the_log_and_write_no_file(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10), numbered(10, 10)])
    version = delete(spark, table, "id IN (3, 15)")
    vectors = [add["deletionVector"] for add in log.actions(table, version, "add")]
    assert [v["storageType"] for v in vectors] == ["i", "i"]
    assert all("offset" not in v for v in vectors)
    assert log.files_in(table, ".bin") == set()


@pytest.mark.protocol("dv-non-functional-2")
def test_large_vectors_of_a_commit_share_one_file_and_tiny_ones_stay_in_the_log(
    spark: SparkSession, table: str
) -> None:
    files = [numbered(i * LARGE, LARGE) for i in range(3)] + [numbered(3 * LARGE, 20)]
    build_table(spark, table, SCHEMA, files)
    version = delete(spark, table, "id % 3 = 0")
    vectors = [add["deletionVector"] for add in log.actions(table, version, "add")]
    stored = sorted((v for v in vectors if v["storageType"] == "u"), key=lambda v: v["offset"])
    assert len(stored) == 3
    assert [v["storageType"] for v in vectors].count("i") == 1
    assert len({v["pathOrInlineDv"] for v in stored}) == 1

    # Protocol § Deletion Vector File Storage Format: a version byte, then for each vector its size
    # in four bytes, its data, and a checksum in four bytes.
    [name] = log.files_in(table, ".bin")
    end = 1
    for vector in stored:
        assert vector["offset"] == end
        end += 4 + vector["sizeInBytes"] + 4
    content = Path(table, name).read_bytes()
    assert (content[0], len(content)) == (1, end)

    version = delete(spark, table, "id % 3 = 1")
    assert len(log.files_in(table, ".bin")) == 2, "each commit writes a file of its own"
    assert rows_of(spark, table) == in_order([r for file in files for r in file if r[0] % 3 == 2])


@pytest.mark.protocol("deletion-vectors-3", "requirements-for-writers-data-files-2")
def test_without_vectors_touched_files_are_rewritten_in_the_same_commit(
    spark: SparkSession, table: str
) -> None:
    files = [numbered(0, 10), numbered(10, 10), numbered(20, 10)]
    build_table(spark, table, SCHEMA, files, deletion_vectors=False)
    before = {add["path"] for add in log.active_files(table)}
    version = delete(spark, table, "id < 3 OR id BETWEEN 10 AND 19")
    assert version == 1
    removed = {r["path"] for r in log.actions(table, version, "remove")}
    added = only(log.actions(table, version, "add"))
    assert len(removed) == 2
    assert removed < before
    assert added["path"] not in before
    assert "deletionVector" not in added
    assert log.statistics(added)["numRecords"] == 7
    assert log.statistics(added)["minValues"]["id"] == 3
    assert log.statistics(added)["tightBounds"] is True
    assert log.files_in(table, ".bin") == set()


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-2")
def test_rewritten_files_stay_in_their_partition(spark: SparkSession, table: str) -> None:
    rows = numbered(0, 5, "a") + numbered(5, 5, "b") + [(10, None), (11, None), (12, "x=/ %")]
    build_table(spark, table, SCHEMA, [rows], partition_by=["p"], deletion_vectors=False)
    version = delete(spark, table, "id IN (0, 5, 10)")
    added = log.actions(table, version, "add")
    assert sorted((a["partitionValues"]["p"] or "") for a in added) == ["", "a", "b"]
    assert rows_of(spark, table) == in_order([r for r in rows if r[0] not in (0, 5, 10)])


@pytest.mark.protocol("deletion-vectors-3", "deletion-vectors-5")
def test_after_the_property_is_switched_off_touched_files_lose_their_vector(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10), numbered(10, 10)])
    delete(spark, table, "id IN (3, 15)")
    metadata = only(log.actions(table, 0, "metaData"))
    metadata["configuration"][DELETION_VECTORS] = "false"
    log.write_commit(table, 2, {"metaData": metadata})

    version = delete(spark, table, "id IN (4, 5)")
    removed = only(log.actions(table, version, "remove"))
    assert log.dv_id(removed) is not None
    assert "deletionVector" not in only(log.actions(table, version, "add"))
    assert [log.dv_id(add) is not None for add in log.active_files(table)].count(True) == 1
    left = [r for r in numbered(0, 20) if r[0] not in (3, 4, 5, 15)]
    assert rows_of(spark, table) == in_order(left)


@pytest.mark.protocol("dv-proposal-sketch-1")
def test_each_version_shows_the_rows_it_had(spark: SparkSession, table: str) -> None:
    build_table(spark, table, SCHEMA, [numbered(0, 10)])
    for condition in ("id = 1", "id IN (2, 3)", "id > 5", "true"):
        delete(spark, table, condition)
    ids = [[r[0] for r in rows_of(spark, table, version=v)] for v in log.versions(table)]
    assert ids == [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [0, 2, 3, 4, 5, 6, 7, 8, 9],
        [0, 4, 5, 6, 7, 8, 9],
        [0, 4, 5],
        [],
    ]
    sql = f"SELECT count(*) FROM delta.`{table}` VERSION AS OF"
    assert [spark.sql(f"{sql} {v}").collect()[0][0] for v in range(5)] == [10, 9, 7, 3, 0]


METRICS = (
    "numDeletedRows",
    "numCopiedRows",
    "numRemovedFiles",
    "numAddedFiles",
    "numDeletionVectorsAdded",
    "numDeletionVectorsUpdated",
    "numDeletionVectorsRemoved",
)


@pytest.mark.parametrize(
    ("deletion_vectors", "expected"),
    [
        (True, [(2, 0, 0, 0, 2, 0, 0), (1, 0, 0, 0, 1, 1, 1), (8, 0, 1, 0, 0, 0, 1)]),
        (False, [(2, 18, 2, 2, 0, 0, 0), (1, 8, 1, 1, 0, 0, 0), (8, 0, 1, 0, 0, 0, 0)]),
    ],
    ids=["vectors", "rewrite"],
)
def test_history_shows_what_each_delete_did(
    spark: SparkSession, table: str, deletion_vectors: bool, expected: list[tuple[int, ...]]
) -> None:
    # The peers' tests compare these numbers with what delta-spark records for the same statements.
    files = [numbered(0, 10, "a"), numbered(10, 10, "b")]
    build_table(spark, table, SCHEMA, files, partition_by=["p"], deletion_vectors=deletion_vectors)
    for condition in ("id IN (3, 15)", "id = 4", "id < 10"):
        delete(spark, table, condition)
    history = DeltaTable.forPath(spark, table).history(3).collect()
    found = [tuple(int(entry.operationMetrics[m]) for m in METRICS) for entry in history]
    assert found[::-1] == expected
    assert [entry.operation for entry in history] == ["DELETE"] * 3
    assert [entry.readVersion for entry in history] == [2, 1, 0]
    assert "id" in history[0].operationParameters["predicate"]


def test_vector_file_is_below_a_random_directory_where_the_table_asks(
    spark: SparkSession, table: str
) -> None:
    """Protocol § Deletion Vector Descriptor Schema: the prefix comes before the encoded UUID."""
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}
    build_table(spark, table, SCHEMA, [numbered(0, 3 * LARGE)], properties=properties)
    delete(spark, table, "id % 3 = 0")
    vector = only(log.active_files(table))["deletionVector"]
    prefix, encoded = vector["pathOrInlineDv"][:-20], vector["pathOrInlineDv"][-20:]
    assert (vector["storageType"], len(prefix), len(encoded)) == ("u", 5, 20)
    [file] = Path(table).rglob("*.bin")
    assert file.relative_to(table).parent == Path(prefix)
    assert spark.read.format("delta").load(table).count() == 2 * LARGE
