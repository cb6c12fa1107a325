"""Random histories of three engines, with vacuums in between: nothing that is needed is lost."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable as DeltaRsTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.cases import drawn_cases
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.vacuumed import aged_copy, files_of, hidden, litter, needed, stored, young

SETTINGS = {
    "spark.deltaic.retentionDurationCheck.enabled": "false",
    "spark.deltaic.deletionVectors.maxInlineBytes": "0",
    "spark.deltaic.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
THERE = """
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
spark.sql(statement).collect()
result = None
"""
STATEMENTS = {
    "insert": "INSERT INTO {t} SELECT id, id % 3 FROM range({a} * 1000, {a} * 1000 + 900, 1, 2)",
    "delete": "DELETE FROM {t} WHERE id % 7 = {a}",
    "delete partition": "DELETE FROM {t} WHERE _p = {a} % 3",
    "update": "UPDATE {t} SET id = id + 1 WHERE id % 5 = {a}",
    "merge": (
        "MERGE INTO {t} t USING (SELECT explode(sequence({a}, {a} + 50)) AS k) s ON t.id = s.k"
        " WHEN MATCHED AND k % 2 = 0 THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (id, _p) VALUES (k, 0)"
    ),
    "overwrite": "INSERT OVERWRITE {t} SELECT id, id % 3 FROM range({a}, {a} + 100, 1, 1)",
    "optimize": "OPTIMIZE {t}",
    "z-order": "OPTIMIZE {t} ZORDER BY (id)",
    "purge": "REORG TABLE {t} APPLY (PURGE)",
    "restore": "RESTORE TABLE {t} TO VERSION AS OF {version}",
    "vacuum": "VACUUM {t} RETAIN 0 HOURS",
    "vacuum lite": "VACUUM {t} LITE RETAIN 0 HOURS",
}
#: Statements that leave the rows of the table, or of an older version, as they are.
SAME_ROWS = {"optimize", "z-order", "purge", "restore"}
#: The engine, what it does, and a number that the statement depends on. delta-rs cannot change the
#: rows of a table with deletion vectors, and makes no clones.
STEPS = st.one_of(
    st.tuples(
        st.sampled_from(["deltaic", "deltaic", "delta-spark"]),
        st.sampled_from(list(STATEMENTS)),
        st.integers(0, 6),
    ),
    st.tuples(st.just("delta-rs"), st.sampled_from(["vacuum", "vacuum lite"]), st.integers(0, 6)),
    st.tuples(st.sampled_from(["deltaic", "delta-spark"]), st.just("clone"), st.integers(0, 6)),
)
_numbers = itertools.count()


def rows(spark: SparkSession, table: str, version: int) -> list[tuple[int, ...]]:
    df = spark.read.format("delta").option("versionAsOf", version).load(table)
    return sorted(tuple(row) for row in df.collect())


def complete_versions(table: str) -> set[int]:
    """Return the versions all of whose files exist, by replay of the log."""
    there = stored(table)
    live: dict[tuple[str, str | None], log.Action] = {}
    found = set()
    for version in log.versions(table):
        for remove in log.actions(table, version, "remove"):
            live.pop((remove["path"], log.dv_id(remove)), None)
        for add in log.actions(table, version, "add"):
            live[add["path"], log.dv_id(add)] = add
        if {name for add in live.values() for name in files_of(add)} <= there:
            found.add(version)
    return found


def restorable(table: str, a: int) -> int | None:
    """Return an older version that can be restored, if there is one."""
    older = sorted(complete_versions(table) - {log.newest(table)})
    return older[a % len(older)] if older else None


def require_clone_apart(
    spark: SparkSession, delta_spark: SparkProcess, engine: str, table: str, a: int
) -> None:
    """Change and vacuum a shallow clone, which must keep its rows and all files of the table."""
    before = stored(table)
    clone = f"{table}-clone-{next(_numbers)}"
    name = f"delta.`{clone}`"
    statement = f"CREATE TABLE {name} SHALLOW CLONE delta.`{table}`"
    if engine == "deltaic":
        spark.sql(statement)
    else:
        delta_spark.run(THERE, statement=statement)
    kept = [row for row in rows(spark, clone, 0) if row[0] % 7 != a]
    spark.sql(STATEMENTS["delete"].format(t=name, a=a))
    spark.sql(STATEMENTS["optimize"].format(t=name))
    time.sleep(0.01)
    spark.sql(STATEMENTS["vacuum"].format(t=name))
    assert rows(spark, clone, log.newest(clone)) == kept
    assert stored(table) == before


def run_history(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    steps: list[tuple[str, str, int]],
) -> dict[int, list[tuple[int, ...]]]:
    """Make a table; return the rows of each version as they were when it was the newest."""
    name = f"delta.`{table}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, _p BIGINT) USING delta PARTITIONED BY (_p) TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO {name} {STATEMENTS['insert'].split(' ', 3)[3].format(a=0)}")
    expected: dict[int, list[tuple[int, ...]]] = {0: [], 1: rows(spark, table, 1)}
    for engine, kind, a in steps:
        if kind == "clone":
            require_clone_apart(spark, delta_spark, engine, table, a)
            continue
        before = log.newest(table)
        version = restorable(table, a) if kind == "restore" else before
        if version is None:
            continue
        statement = STATEMENTS[kind].format(t=name, a=a, version=version)
        if kind.startswith("vacuum"):
            # The clocks of the file system and of the session agree to the millisecond.
            time.sleep(0.01)
        if engine == "deltaic":
            spark.sql(statement).collect()
        elif engine == "delta-rs":
            # With `full`, delta-rs 1.6.6 deletes the files of deletion vectors that are in use.
            DeltaRsTable(table).vacuum(
                0, dry_run=False, enforce_retention_duration=False, full=False
            )
        else:
            delta_spark.run(THERE, statement=statement)
        newest = log.newest(table)
        now = rows(spark, table, newest)
        if kind in SAME_ROWS:
            assert now == expected[version]
        expected.update(dict.fromkeys(range(max(expected) + 1, newest + 1), now))
    return expected


@pytest.mark.protocol("dv-functional-2")
@drawn_cases(1, thorough=8)
@given(
    steps=st.lists(STEPS, min_size=3, max_size=7),
    boundary=st.integers(0, 12),
    kind=st.sampled_from(["FULL", "LITE", "inventory"]),
)
def test_every_version_within_the_retention_can_be_read_after_vacuum(
    spark: SparkSession,
    delta_spark: SparkProcess,
    tmp_path: Path,
    steps: list[tuple[str, str, int]],
    boundary: int,
    kind: str,
) -> None:
    table = str(tmp_path / f"table-{next(_numbers)}")
    with session_settings(spark, SETTINGS):
        expected = run_history(spark, delta_spark, table, steps)
        ages = {v: 200.0 if v < boundary else 20.0 for v in log.versions(table)}
        aged = aged_copy(table, f"{table}-aged", ages)
        garbage = litter(aged)
        for name in garbage:
            os.utime(Path(aged, name), (1, 1))
        # A version is the newest until the next is committed.
        within = {v for v in expected if v >= boundary - 1}
        readable = complete_versions(aged) & within
        keep = (needed(aged, 168) | young(aged, 168) | hidden(aged)) & stored(aged)
        statement = f"VACUUM delta.`{aged}`"
        if kind == "inventory":
            spark.sql(f"{statement} DRY RUN").createOrReplaceTempView("plan")
            spark.sql(f"{statement} USING INVENTORY plan")
        else:
            spark.sql(f"{statement} {kind}")
        assert keep <= stored(aged)
        if kind != "LITE":
            assert stored(aged) == keep
        assert readable == complete_versions(aged) & within
        for version in readable:
            assert rows(spark, aged, version) == expected[version], version
        DeltaRsTable(aged).vacuum(168, dry_run=False)
        for version in readable:
            assert rows(spark, aged, version) == expected[version], version
