"""Files that lose most of their rows are rewritten by the statement that deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v INT"
FILES = [[(10 * file + row, row) for row in range(10)] for file in range(3)]
ALWAYS = {"spark.deltaic.deletionVectors.minDeletedBytes": "0"}


def row_ids(spark: SparkSession, name: str) -> dict[int, int]:
    rows = spark.sql(f"SELECT id, _metadata.row_id AS row FROM {name}").collect()
    return {row["id"]: row["row"] for row in rows}


@pytest.mark.protocol("dv-step-4-full-compaction-1")
def test_file_that_keeps_few_rows_is_rewritten_and_the_others_get_vectors(
    spark: SparkSession, table: str
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    name = f"delta.`{table}`"
    ids = row_ids(spark, name)
    # Three rows of the first file, seven of the second, all of the third.
    condition = "id IN (1, 2, 3) OR id BETWEEN 10 AND 16 OR id >= 20"
    with session_settings(spark, ALWAYS):
        spark.sql(f"DELETE FROM {name} WHERE {condition}")
    vector, copy = sorted(log.actions(table, 1, "add"), key=lambda add: "deletionVector" not in add)
    assert (vector["deletionVector"]["cardinality"], "deletionVector" in copy) == (3, False)
    metrics = log.commit_info(table, 1)["operationMetrics"]
    assert (metrics["numCopiedRows"], metrics["numDeletedRows"]) == ("3", "20")
    assert log.commit_info(table, 1)["tags"] == {"delta.rowTracking.preserved": "true"}
    left = row_ids(spark, name)
    assert left == {key: ids[key] for key in (0, 4, 5, 6, 7, 8, 9, 17, 18, 19)}
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", "1")
    changes = feed.format("delta").load(table).select("_change_type", "id").collect()
    assert sorted(map(tuple, changes)) == sorted(
        ("delete", key) for key in ids.keys() - left.keys()
    )


def tracked(spark: SparkSession, name: str) -> dict[int, tuple[int, int, int]]:
    """Return value, row ID and commit version of each row, by its key."""
    columns = "id, v, _metadata.row_id AS row, _metadata.row_commit_version AS version"
    rows = spark.sql(f"SELECT {columns} FROM {name}").collect()
    return {row["id"]: (row["v"], row["row"], row["version"]) for row in rows}


@pytest.mark.protocol("writer-row-tracking-21", "writer-row-tracking-24", "writer-row-tracking-26")
@pytest.mark.protocol("writer-row-tracking-27", "writer-row-tracking-29", "writer-row-tracking-31")
def test_rows_keep_ids_and_commit_versions_when_heavily_deleted_files_are_rewritten(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES, properties={"delta.enableRowTracking": "true"})
    name = f"delta.`{table}`"
    expected = tracked(spark, name)
    source = "(SELECT * FROM VALUES (5, -3), (14, -3), (26, -3), (90, -3) s(id, v))"
    any_share = {"spark.deltaic.deletionVectors.maxDeletedRowsRatio": "0"}
    with session_settings(spark, {**ALWAYS, **any_share}):
        # A few rows of every file change, so that all of them are copied each time.
        for version, (statement, changed, gone) in enumerate(
            [
                (f"UPDATE {name} SET v = -1 WHERE id % 10 = 3", {3: -1, 13: -1, 23: -1}, set()),
                (f"DELETE FROM {name} WHERE id % 10 = 4", {}, {4, 14, 24}),
                (
                    f"MERGE INTO {name} t USING {source} s ON t.id = s.id WHEN MATCHED AND"
                    " s.id = 26 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED"
                    " THEN INSERT *",
                    {5: -3, 14: -3, 90: -3},
                    {26},
                ),
            ],
            start=1,
        ):
            spark.sql(statement)
            adds = log.actions(table, version, "add")
            assert adds and not [add for add in adds if "deletionVector" in add]
            assert log.commit_info(table, version)["tags"]["delta.rowTracking.preserved"] == "true"
            found, highest = tracked(spark, name), max(row for _, row, _ in expected.values())
            for key in gone:
                del expected[key]
            for key, value in changed.items():
                fresh = key not in expected
                row = found[key][1] if fresh else expected[key][1]
                assert not fresh or row > highest
                expected[key] = (value, row, version)
            assert found == expected
    assert len({row for _, row, _ in expected.values()}) == len(expected)


@pytest.mark.protocol("dv-step-4-full-compaction-1")
def test_table_sets_the_share_of_deleted_rows_and_small_deletes_rewrite_nothing(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, SCHEMA, FILES[:1])
    name, share = f"delta.`{table}`", "deltaic.deletionVectors.maxDeletedRowsRatio"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{share}' = '0.1')")
    spark.sql(f"UPDATE {name} SET v = -1 WHERE id < 3")
    assert [add for add in log.actions(table, 2, "add") if "deletionVector" in add]
    with session_settings(spark, ALWAYS):
        spark.sql(f"UPDATE {name} SET v = -2 WHERE id = 5")
    assert not [add for add in log.actions(table, 3, "add") if "deletionVector" in add]
    expected = [(i, -1 if i < 3 else -2 if i == 5 else i) for i in range(10)]
    assert rows_of(spark, table) == expected
    with pytest.raises(Exception, match=r"DELTAIC_INVALID_TABLE_PROPERTY.*from 0 to 1"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{share}' = '2')")
    with pytest.raises(
        Exception, match=r"DELTAIC_UNKNOWN_TABLE_PROPERTY[\s\S]*maxDeletedRowsRatio"
    ):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{share}s' = '1')")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{share}')")
    with (
        session_settings(spark, {"spark.deltaic.deletionVectors.maxDeletedRowsRatio": "2"}),
        pytest.raises(Exception, match=r"DELTAIC_INVALID_SESSION_SETTING.*maxDeletedRowsRatio"),
    ):
        spark.sql(f"DELETE FROM {name} WHERE id = 9")
