"""Tables with row tracking and in-commit timestamps: delta-spark reads ours and goes on writing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deltaic import DeltaTable
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.spark_process import SparkProcess

PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true',"
    " 'delta.enableInCommitTimestamps' = 'true'"
)
ROWS = "id, v, _metadata.row_id AS r, _metadata.row_commit_version AS c"
READ = f"""
df = spark.sql(f"SELECT {ROWS} FROM delta.`{{path}}`")
result = sorted(map(list, df.collect()))
"""
RUN = "spark.sql(statement)\nresult = None"


def ours(spark: SparkSession, path: str) -> list[list[Any]]:
    return sorted(map(list, spark.sql(f"SELECT {ROWS} FROM delta.`{path}`").collect()))


def theirs(peer: SparkProcess, path: str) -> list[list[Any]]:
    return list(peer.run(READ, path=path))


def create(spark: SparkSession, table: str, properties: str = PROPERTIES) -> str:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range(0, 6, 1, 1)")
    return name


def high_water_mark(table: str) -> int:
    high_water_marks = [
        json.loads(action["configuration"])["rowIdHighWaterMark"]
        for version in log.versions(table)
        for action in log.actions(table, version, "domainMetadata")
        if action["domain"] == "delta.rowTracking"
    ]
    assert high_water_marks == sorted(high_water_marks)
    return int(high_water_marks[-1])


def timestamps(table: str) -> list[int]:
    return [log.commit_info(table, v)["inCommitTimestamp"] for v in log.versions(table)]


@pytest.mark.protocol("reader-row-tracking-4", "reader-row-tracking-8", "writer-row-tracking-11")
@pytest.mark.protocol("writer-row-tracking-12", "writer-row-tracking-5", "writer-row-tracking-7")
def test_row_ids_and_times_of_our_commits_are_those_that_delta_spark_reads(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = create(spark, table)
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"INSERT INTO {name} SELECT id, 'b' FROM range(10, 13, 1, 1)")
    kept = [[0, "a", 0, 1], *([n, "a", n, 1] for n in range(2, 6))]
    assert ours(spark, table) == [*kept, *([10 + n, "b", 6 + n, 3] for n in range(3))]
    assert theirs(delta_spark, table) == ours(spark, table)
    assert high_water_mark(table) == 8
    shown = delta_spark.run(
        "rows = spark.sql(f'DESCRIBE HISTORY delta.`{path}`').collect()\n"
        "result = [int(row.timestamp.timestamp() * 1000) for row in rows]",
        path=table,
    )
    assert shown == timestamps(table)[::-1]
    history = DeltaTable.forPath(spark, table).history().collect()
    assert [int(row.timestamp.timestamp() * 1000) for row in history] == shown


@pytest.mark.protocol("writer-row-tracking-3", "writer-row-tracking-6")
def test_both_engines_go_on_giving_row_ids_and_times_after_each_other(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = create(spark, table)
    delta_spark.run(RUN, statement=f"INSERT INTO {name} VALUES (20, 'theirs')")
    spark.sql(f"INSERT INTO {name} VALUES (21, 'ours')")
    delta_spark.run(RUN, statement=f"UPDATE {name} SET v = 'changed' WHERE id = 2")
    spark.sql(f"DELETE FROM {name} WHERE id IN (0, 2)")
    spark.sql(f"INSERT INTO {name} VALUES (22, 'ours')")
    rows = ours(spark, table)
    assert rows == theirs(delta_spark, table)
    assert [row[0] for row in rows] == [1, 3, 4, 5, 20, 21, 22]
    row_ids = [row[2] for row in rows]
    assert len(set(row_ids)) == len(row_ids)
    assert max(row_ids) <= high_water_mark(table)
    assert timestamps(table) == sorted(set(timestamps(table)))
    infos = [log.commit_info(table, version) for version in log.versions(table)]
    mine = [info["tags"] for info in infos if info["engineInfo"].startswith("Deltaic")]
    assert mine == [{"delta.rowTracking.preserved": "true"}] * 5


@pytest.mark.protocol("writer-row-tracking-21", "writer-row-tracking-33")
@pytest.mark.parametrize(
    ("statement", "preserved"),
    [
        ("INSERT INTO {t} VALUES (9, 'b')", "true"),
        ("INSERT OVERWRITE {t} VALUES (9, 'b')", "true"),
        ("DELETE FROM {t} WHERE id = 1", "true"),
        (
            "MERGE INTO {t} t USING (SELECT 9L AS id) s ON t.id = s.id"
            " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'b')",
            "true",
        ),
    ],
)
def test_commits_say_whether_rows_kept_their_ids(
    spark: SparkSession, table: str, statement: str, preserved: str
) -> None:
    spark.sql(statement.replace("{t}", create(spark, table)))
    assert log.commit_info(table)["tags"] == {"delta.rowTracking.preserved": preserved}
    row_ids = [row[2] for row in ours(spark, table)]
    assert len(set(row_ids)) == len(row_ids)


#: Statements, and what they do to the ids 0 to 5: which rows they change, which of them are gone.
CHANGES: list[tuple[str, set[int], set[int]]] = [
    ("UPDATE {t} SET v = 'u' WHERE id % 3 = 0", {0, 3}, set()),
    ("DELETE FROM {t} WHERE id = 1", set(), {1}),
    (
        "MERGE INTO {t} t USING (SELECT explode(array(2, 4, 40)) k) s ON t.id = k "
        "WHEN MATCHED AND k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, 'i') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET v = 'n'",
        {2, 5},
        {4},
    ),
    ("UPDATE {t} SET v = 'again' WHERE id IN (0, 40)", {0, 40}, set()),
    ("DELETE FROM {t} WHERE id = 3", set(), {3}),
]


@pytest.mark.protocol("reader-row-tracking-2", "reader-row-tracking-5", "reader-row-tracking-6")
@pytest.mark.protocol("writer-row-tracking-12", "writer-row-tracking-13", "writer-row-tracking-20")
@pytest.mark.protocol("writer-row-tracking-21", "writer-row-tracking-23", "writer-row-tracking-24")
@pytest.mark.protocol("writer-row-tracking-25", "writer-row-tracking-26", "writer-row-tracking-27")
@pytest.mark.protocol("writer-row-tracking-28", "writer-row-tracking-29", "writer-row-tracking-30")
@pytest.mark.protocol("writer-row-tracking-31", "writer-row-tracking-32")
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "rewrite"])
def test_rows_keep_their_ids_and_what_did_not_change_its_version(
    spark: SparkSession, delta_spark: SparkProcess, table: str, vectors: str
) -> None:
    name = create(
        spark,
        table,
        f"'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = '{vectors}'",
    )
    known = {row[0]: row[2:] for row in ours(spark, table)}
    for version, (statement, changed, gone) in enumerate(CHANGES, start=2):
        spark.sql(statement.replace("{t}", name))
        rows = {row[0]: row[2:] for row in ours(spark, table)}
        for key, (row_id, commit_version) in rows.items():
            before = known.get(key)
            if before is None:
                assert row_id > max(taken for taken, _ in known.values()), key
            expected = version if before is None or key in changed else before[1]
            assert (row_id, commit_version) == (before[0] if before else row_id, expected), key
        assert known.keys() - rows.keys() == gone
        known = rows
        assert log.commit_info(table)["tags"] == {"delta.rowTracking.preserved": "true"}
    assert theirs(delta_spark, table) == ours(spark, table)
    assert len({row_id for row_id, _ in known.values()}) == len(known)
    assert max(row_id for row_id, _ in known.values()) <= high_water_mark(table)
    for command in (f"OPTIMIZE {name}", f"REORG TABLE {name} APPLY (PURGE)"):
        delta_spark.run(RUN, statement=command)
        assert {row[0]: row[2:] for row in ours(spark, table)} == known, command
    assert all("deletionVector" not in add for add in log.active_files(table))


def test_table_that_asks_vacuum_to_check_the_protocol_is_written_by_both(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = create(spark, table, "'delta.feature.vacuumProtocolCheck' = 'supported'")
    upgraded = create(spark, f"{table}-upgraded", "'delta.enableDeletionVectors' = 'false'")
    DeltaTable.forPath(spark, f"{table}-upgraded").addFeatureSupport("vacuumProtocolCheck")
    for path, named in ((table, name), (f"{table}-upgraded", upgraded)):
        versions = log.versions(path)
        protocol = [p for v in versions for p in log.actions(path, v, "protocol")][-1]
        assert "vacuumProtocolCheck" in protocol["readerFeatures"]
        assert "vacuumProtocolCheck" in protocol["writerFeatures"]
        spark.sql(f"INSERT INTO {named} VALUES (7, 'ours')")
        delta_spark.run(RUN, statement=f"INSERT INTO {named} VALUES (8, 'theirs')")
        spark.sql(f"DELETE FROM {named} WHERE id < 5")
        found = sorted(map(tuple, spark.table(named).collect()))
        assert found == [(5, "a"), (7, "ours"), (8, "theirs")]
        read = "result = sorted(map(list, spark.table(named).collect()))"
        assert delta_spark.run(read, named=named) == [list(row) for row in found]


@pytest.mark.protocol("writer-row-tracking-10", "writer-row-tracking-12")
def test_commit_that_lost_to_delta_spark_takes_the_row_ids_and_times_after_its(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = create(spark, table)
    statement = f"INSERT INTO {name} SELECT id, 'theirs' FROM range(20, 24, 1, 1)"
    with committed_meanwhile(lambda: delta_spark.run(RUN, statement=statement)):
        spark.sql(f"INSERT INTO {name} VALUES (30, 'ours')")
    rows = ours(spark, table)
    assert rows == theirs(delta_spark, table)
    assert rows[6:] == [*([20 + n, "theirs", 6 + n, 2] for n in range(4)), [30, "ours", 10, 3]]
    assert timestamps(table) == sorted(set(timestamps(table)))


def test_replaced_table_says_since_when_its_commits_keep_their_own_time(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = f"delta.`{table}`"
    spark.range(3).write.format("delta").save(table)
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} USING delta TBLPROPERTIES ({PROPERTIES})"
        " AS SELECT id, 'b' AS v FROM range(0, 4, 1, 1)"
    )
    delta_spark.run(RUN, statement=f"INSERT INTO {name} VALUES (9, 'theirs')")
    configuration = log.metadata(table)["configuration"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    since = log.commit_info(table, 1)["inCommitTimestamp"]
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(since)
    assert theirs(delta_spark, table) == ours(spark, table)
    history = DeltaTable.forPath(spark, table).history().collect()
    shown = delta_spark.run(
        "result = [int(row.timestamp.timestamp() * 1000)"
        " for row in spark.sql(f'DESCRIBE HISTORY delta.`{path}`').collect()]",
        path=table,
    )
    assert [int(row.timestamp.timestamp() * 1000) for row in history] == shown


def test_metadata_domains_that_users_set_are_there_for_delta_spark_and_outlive_its_commits(
    spark: SparkSession, delta_spark: SparkProcess, table: str
) -> None:
    name = create(spark, table)
    delta = DeltaTable.forPath(spark, table)
    delta.setDomainMetadata("com.example.pipeline", '{"step":7}')
    for n in range(12):
        delta_spark.run(RUN, statement=f"INSERT INTO {name} VALUES ({20 + n}, 'theirs')")
    spark.catalog.clearCache()
    assert delta.domainMetadata() == {"com.example.pipeline": '{"step":7}'}
    delta.removeDomainMetadata("com.example.pipeline")
    assert delta.domainMetadata() == {}
    assert len(theirs(delta_spark, table)) == 18
