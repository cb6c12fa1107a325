"""What changed in a table: ranges, entry points, plans and errors of the change data feed."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.support import log
from tests.support.cases import drawn_cases
from tests.support.change_feed import (
    PROPERTY,
    apply_changes,
    changes,
    enable_feed,
    kinds,
    rows_at,
)
from tests.support.plans import only_scan, plan_nodes
from tests.support.predicates import SCHEMA, Predicate, predicates, rows
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import append_file, build_table, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: When version 0 of `recorded` was committed; each further one is a minute later.
START = dt.datetime(2024, 3, 1, 12, 0, tzinfo=dt.timezone.utc)
MINUTE = dt.timedelta(minutes=1)

#: What happens in each version of `recorded`, by kind of change.
CHANGES = {
    0: {"insert": 90},
    1: {"delete": 2},
    2: {"insert": 10},
    3: {"delete": 30},
    4: {"delete": 1, "insert": 1},
}

OUT_OF_RANGE = "spark.deltaic.changeDataFeed.timestampOutOfRange.enabled"


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of five versions: made, deleted from, appended to, deleted from, updated."""
    path = str(tmp_path_factory.mktemp("recorded") / "table")
    df = spark.range(90).selectExpr("id", "id DIV 30 AS part", "cast(id AS STRING) AS s")
    table = build_with_oracle(spark, path, df, files=3, deletion_vectors=True)
    table.delete("id IN (3, 33)")
    table.append(spark.range(90, 100, 1, 1).selectExpr("id", "3L AS part", "'new' AS s"))
    table.delete("id BETWEEN 60 AND 89")
    spark.sql(f"UPDATE {table.sql_name} SET s = 'updated' WHERE id = 5")
    enable_feed(spark, path, first_time_s=int(START.timestamp()))
    return path


@pytest.fixture(scope="module")
def named(spark: SparkSession, recorded: str) -> Iterator[str]:
    spark.sql(f"CREATE TABLE recorded USING delta LOCATION '{recorded}'")
    yield "recorded"
    spark.sql("DROP TABLE recorded")


def between(first: int, last: int) -> dict[int, dict[str, int]]:
    return {version: CHANGES[version] for version in range(first, last + 1)}


def at(version: float) -> str:
    """Return the time of a version, in UTC."""
    return (START + version * MINUTE).strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.protocol("reader-addcdcfile-4")
def test_feed_has_the_columns_of_the_table_and_three_more(spark: SparkSession, recorded: str):
    df = changes(spark, recorded, startingVersion=0)
    types = [(field.name, field.dataType.simpleString()) for field in df.schema]
    assert types == [
        ("id", "bigint"),
        ("part", "bigint"),
        ("s", "string"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]
    times = df.select("_commit_version", F.unix_millis("_commit_timestamp")).distinct()
    assert {tuple(row) for row in times.collect()} == {
        (v, int((START + v * MINUTE).timestamp() * 1000)) for v in CHANGES
    }


def test_every_entry_point_returns_the_same_changes(spark: SparkSession, recorded: str, named: str):
    options: dict[str, Any] = {"startingVersion": 1, "endingVersion": 3}
    dfs = [
        changes(spark, recorded, **options),
        spark.read.format("delta")
        .option("readChangeData", "true")
        .options(**options)
        .load(recorded),
        spark.read.option("readChangeFeed", "true").options(**options).table(named),
        spark.sql(f"SELECT * FROM table_changes('{named}', 1, 3)"),
        spark.sql(f"SELECT * FROM table_changes('spark_catalog.default.{named}', 1L, 3)"),
        spark.sql(f"SELECT * FROM table_changes('delta.`{recorded}`', 1, 3)"),
        spark.sql(f"SELECT * FROM table_changes_by_path('{recorded}', 1, 3)"),
        spark.sql(
            f"SELECT * FROM {named} WITH "
            "('readChangeFeed' = 'true', 'startingVersion' = '1', 'endingVersion' = '3')"
        ),
        spark.sql(f"SELECT * FROM table_changes('{named}', '{at(1)}', '{at(3)}')"),
        spark.sql(
            f"SELECT * FROM table_changes('{named}', CAST('{at(0.5)}' AS TIMESTAMP),"
            f" TIMESTAMP'{at(3.5)}')"
        ),
    ]
    expected = Counter(map(repr, dfs[0].collect()))
    assert kinds(dfs[0]) == between(1, 3)
    for df in dfs:
        assert Counter(map(repr, df.collect())) == expected
        assert df.columns == dfs[0].columns


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("FROM VERSION 1 TO VERSION 3", between(1, 3)),
        ("FROM VERSION 3", between(3, 4)),
        ("FROM VERSION 1 EXCLUSIVE TO VERSION 3", between(2, 3)),
        (f"FROM TIMESTAMP '{at(0.5)}' TO TIMESTAMP '{at(2)}'", between(1, 2)),
        ("FROM VERSION 3 EXCLUSIVE", between(4, 4)),
        ("FROM VERSION 4 EXCLUSIVE", {}),
        ("FROM VERSION 3 EXCLUSIVE TO VERSION 3", {}),
        ("FROM VERSION 2 EXCLUSIVE TO VERSION 2 EXCLUSIVE", {}),
        ("FROM VERSION 2 EXCLUSIVE TO VERSION 3 EXCLUSIVE", {}),
        (f"FROM TIMESTAMP '{at(4)}' EXCLUSIVE", {}),
    ],
)
def test_changes_clause_of_spark_shows_the_same_changes(
    spark: SparkSession, named: str, clause: str, expected: Any
):
    assert kinds(spark.sql(f"SELECT * FROM {named} CHANGES {clause}")) == expected


@pytest.mark.parametrize(
    ("clause", "condition"),
    [
        ("FROM VERSION 5 EXCLUSIVE", "DELTAIC_CHANGES_START_AFTER_LATEST"),
        ("FROM VERSION 5", "DELTAIC_CHANGES_START_AFTER_LATEST"),
        ("FROM VERSION 4 EXCLUSIVE TO VERSION 1", "DELTAIC_CHANGES_END_BEFORE_START"),
        (f"FROM TIMESTAMP '{at(4.1)}' EXCLUSIVE", "DELTAIC_TIMESTAMP_AFTER_LATEST"),
    ],
)
def test_changes_clause_without_an_end_that_is_out_of_range_is_refused(
    spark: SparkSession, named: str, clause: str, condition: str
):
    with pytest.raises(Exception, match=condition):
        spark.sql(f"SELECT * FROM {named} CHANGES {clause}")


def test_functions_work_in_joins_views_and_subqueries_beside_the_table(
    spark: SparkSession, named: str
):
    join = f"""SELECT t.id, c._commit_version FROM {named} t
        JOIN table_changes('{named}', 1) AS c ON t.id = c.id ORDER BY ALL"""
    ids = [tuple(row) for row in spark.sql(join).collect()]
    assert ids == [(5, 4), (5, 4), *((n, 2) for n in range(90, 100))]
    marked = f"{named} WITH ('readChangeFeed' = 'true', 'startingVersion' = '1')"
    both = f"SELECT count(c._change_type), max(t.id) FROM {marked} c JOIN {named} t ON t.id = c.id"
    assert tuple(spark.sql(both).collect()[0]) == (12, 99)
    spark.sql(f"CREATE TEMP VIEW changed AS SELECT * FROM table_changes('{named}', 3)")
    assert kinds(spark.table("changed")) == between(3, 4)
    spark.catalog.dropTempView("changed")
    nested = f"SELECT (SELECT count(*) FROM table_changes('{named}', 3, 3)) AS n"
    assert spark.sql(nested).collect()[0].n == 30


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": 0}, between(0, 4)),
        ({"startingVersion": 4}, between(4, 4)),
        ({"startingVersion": 2, "endingVersion": 2}, between(2, 2)),
        ({"startingVersion": 3, "endingVersion": 99}, between(3, 4)),
        ({"startingTimestamp": at(0)}, between(0, 4)),
        ({"startingTimestamp": at(-100)}, between(0, 4)),
        ({"startingTimestamp": at(1.5)}, between(2, 4)),
        ({"startingTimestamp": at(2), "endingTimestamp": at(3)}, between(2, 3)),
        ({"startingTimestamp": at(0.1), "endingTimestamp": at(3.9)}, between(1, 3)),
        ({"startingVersion": 1, "endingTimestamp": at(2.5)}, between(1, 2)),
        ({"startingTimestamp": at(2.1), "endingTimestamp": at(2.9)}, {}),
        ({"startingVersion": 2, "versionAsOf": 3}, between(2, 4)),
    ],
    ids=str,
)
def test_ends_of_a_range_are_inclusive_and_times_name_the_commits_between_them(
    spark: SparkSession, recorded: str, options: dict[str, Any], expected: Any
):
    # The commits are of the past; without VACUUM their files are there.
    policy = "spark.deltaic.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    with session_settings(spark, {policy: "false"}):
        assert kinds(changes(spark, recorded, **options)) == expected


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({}, "DELTAIC_CHANGES_START_MISSING"),
        ({"endingVersion": 1}, "DELTAIC_CHANGES_START_MISSING"),
        ({"startingVersion": 5}, "DELTAIC_CHANGES_START_AFTER_LATEST.*version 5.*is 4"),
        ({"startingVersion": 3, "endingVersion": 1}, "DELTAIC_CHANGES_END_BEFORE_START"),
        (
            {"startingTimestamp": at(3), "endingTimestamp": at(1)},
            "DELTAIC_CHANGES_END_BEFORE_START",
        ),
        (
            {"startingTimestamp": at(2.9), "endingTimestamp": at(2.1)},
            "DELTAIC_CHANGES_END_BEFORE_START",
        ),
        ({"startingTimestamp": at(4.1)}, "DELTAIC_TIMESTAMP_AFTER_LATEST"),
        ({"startingVersion": 0, "endingTimestamp": at(4.1)}, "DELTAIC_TIMESTAMP_AFTER_LATEST"),
        ({"startingVersion": 0, "endingTimestamp": at(-1)}, "DELTAIC_TIMESTAMP_BEFORE_EARLIEST"),
        ({"startingVersion": "latest"}, "DELTAIC_CHANGES_OPTION_INVALID.*startingVersion"),
        ({"startingVersion": -1}, "DELTAIC_CHANGES_OPTION_INVALID"),
        (
            {"startingVersion": 0, "startingTimestamp": "2020-01-01"},
            "DELTAIC_CHANGES_OPTION_INVALID.*startingTimestamp.*startingVersion is specified",
        ),
        ({"startingVersion": 0, "readChangeFeed": "yes"}, "DELTAIC_CHANGES_OPTION_INVALID"),
        ({"startingTimestamp": "some day"}, "DELTAIC_INVALID_TIME_TRAVEL"),
    ],
    ids=str,
)
def test_range_that_is_none_is_an_error_that_says_why(
    spark: SparkSession, recorded: str, options: dict[str, Any], condition: str
):
    with pytest.raises(Exception, match=f"(?s){condition}"):
        changes(spark, recorded, **options).collect()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": 5}, {}),
        ({"startingTimestamp": at(4.1)}, {}),
        ({"startingVersion": 3, "endingTimestamp": at(9)}, between(3, 4)),
    ],
    ids=str,
)
def test_range_beyond_the_latest_version_is_empty_where_the_session_allows_it(
    spark: SparkSession, recorded: str, options: dict[str, Any], expected: Any
):
    for setting in (OUT_OF_RANGE, OUT_OF_RANGE.replace("deltaic", "databricks.delta")):
        with session_settings(spark, {setting: "true"}):
            assert kinds(changes(spark, recorded, **options)) == expected


@pytest.mark.parametrize(
    "call",
    [
        "table_changes()",
        "table_changes('{t}')",
        "table_changes('{t}', 0, 1, 2)",
        "table_changes('{t}', NULL)",
        "table_changes('{t}', 1.5)",
        "table_changes('{t}', DATE'2024-01-01')",
        "table_changes(3, 0)",
        "table_changes_by_path('{t}', rand())",
    ],
)
def test_call_with_wrong_arguments_is_refused(spark: SparkSession, named: str, call: str):
    with pytest.raises(Exception, match=r"DELTAIC_INVALID_FUNCTION_ARGUMENT.*\n?.*Usage"):
        spark.sql(f"SELECT * FROM {call.format(t=named)}")


def test_what_is_no_delta_table_has_no_changes(spark: SparkSession, named: str, tmp_path: Path):
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM table_changes('nowhere', 0)")
    with pytest.raises(Exception, match="DELTAIC_NOT_A_TABLE"):
        spark.sql(f"SELECT * FROM table_changes_by_path('{tmp_path}', 0)")
    spark.sql(f"CREATE TEMP VIEW on_recorded AS SELECT * FROM {named}")
    try:
        with pytest.raises(Exception, match="DELTAIC_NAME_IS_NOT_A_TABLE"):
            spark.sql("SELECT * FROM table_changes('on_recorded', 0)")
    finally:
        spark.catalog.dropTempView("on_recorded")


def test_changes_are_read_in_one_columnar_scan_of_the_columns_asked_for(
    spark: SparkSession, recorded: str
):
    df = changes(spark, recorded, startingVersion=0).select("s", "_commit_version")
    scan = only_scan(df)
    assert scan.supportsColumnar()
    names = [scan.output().apply(i).name() for i in range(scan.output().size())]
    assert names[0] == "s"
    assert "id" not in names
    assert all(n.in_codegen for n in plan_nodes(df) if n.is_deletion_filter)
    counted = changes(spark, recorded, startingVersion=0).groupBy().count()
    assert counted.collect()[0][0] == 134


@pytest.mark.parametrize(
    ("condition", "files", "count"),
    [
        ("_commit_version = 2", 1, 10),
        ("_commit_version IN (0, 2)", 4, 100),
        (f"_commit_timestamp = TIMESTAMP'{at(0)}'", 3, 90),
        ("_change_type = 'insert' AND _commit_version = 0", 3, 90),
        ("_change_type = 'update_preimage'", 0, 0),
        ("_commit_version = 0 AND id = 45", 1, 1),
        ("_commit_version > 4", 0, 0),
    ],
)
def test_filters_on_the_change_and_on_statistics_choose_the_files(
    spark: SparkSession, recorded: str, condition: str, files: int, count: int
):
    df = changes(spark, recorded, startingVersion=0).where(condition)
    partitions = only_scan(df).batch().planInputPartitions()
    found = sum(len(partition.files().files()) for partition in partitions)
    assert found == files
    assert len(df.collect()) == count


def test_planning_runs_no_job(spark: SparkSession, recorded: str):
    before = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    df = changes(spark, recorded, startingVersion=0).where("_commit_version > 1")
    df._jdf.queryExecution().executedPlan().toString()
    after = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    assert after == before


def test_open_range_shows_what_is_committed_later_and_a_cached_one_does_not_answer_for_it(
    spark: SparkSession, table: str
):
    target = build_with_oracle(spark, table, spark.range(0, 5, 1, 1))
    enable_feed(spark, table)
    open_range = changes(spark, table, startingVersion=0).cache()
    assert open_range.count() == 5
    add = {**log.actions(table, 0, "add")[0], "dataChange": True}
    log.write_commit(
        table,
        1,
        {
            "remove": {
                "path": add["path"],
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": add["size"],
            }
        },
    )
    try:
        assert kinds(changes(spark, table, startingVersion=0)) == {
            0: {"insert": 5},
            1: {"delete": 5},
        }
        assert target.df().count() == 0
    finally:
        open_range.unpersist(blocking=True)
    assert open_range.count() == 10


def test_rows_of_a_file_whose_size_is_not_in_the_log_are_distinguished(
    spark: SparkSession, table: str
):
    target = build_with_oracle(spark, table, spark.range(0, 5, 1, 1), deletion_vectors=True)
    target.delete("id = 3")
    enable_feed(spark, table)
    commit = log.commit_path(table, 1)
    actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
    for action in actions:
        for kind in {"add", "remove"} & action.keys():
            action[kind]["size"] = 0
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
    found = changes(spark, table, startingVersion=1).select("id", "_change_type")
    assert [tuple(row) for row in found.collect()] == [(3, "delete")]


FAIL_CLOSED = """
def attempt(df):
    try:
        return [str(row) for row in df().collect()]
    except Exception as e:
        return str(e)
options = {"readChangeFeed": "true", "startingVersion": "0"}
result = [
    attempt(lambda: spark.read.format("delta").options(**options).load(path)),
    attempt(lambda: spark.read.options(**options).table(f"delta.`{path}`")),
]
"""


def test_without_the_extension_changes_are_refused_and_never_rows_that_did_not_change(
    without_extension: SparkProcess, recorded: str
):
    by_path, by_name = without_extension.run(FAIL_CLOSED, path=recorded)
    assert "DELTAIC_DELETION_VECTOR_FILTER_MISSING" in by_path
    assert "DELTAIC_UNSUPPORTED_OPERATION" in by_name
    assert "DeltaicExtension" in by_name


_numbers = itertools.count()


#: Statements on ``{t}`` for the rows that ``{c}`` selects: the conditions refer to the table alone.
STATEMENTS = {
    "delete": "DELETE FROM {t} WHERE {c}",
    "update": "UPDATE {t} SET p = p + 1, s = concat('u', s) WHERE {c}",
    "merge": """MERGE INTO {t} t USING (SELECT explode(array(0, 1, 5)) k) x ON t.p = k
        WHEN MATCHED AND ({c}) THEN DELETE
        WHEN MATCHED THEN UPDATE SET s = 'm', p = k + 1
        WHEN NOT MATCHED THEN INSERT (p, s) VALUES (k, 'i')
        WHEN NOT MATCHED BY SOURCE AND ({c}) THEN UPDATE SET n = 0
        WHEN NOT MATCHED BY SOURCE AND flag THEN DELETE""",
}


@pytest.mark.protocol("writer-addcdcfile-2")
@drawn_cases(3, thorough=24, same=True)
@given(
    files=st.lists(st.lists(rows(), min_size=1, max_size=6), min_size=1, max_size=3),
    appended=st.lists(rows(), min_size=1, max_size=4),
    statements=st.lists(
        st.tuples(st.sampled_from(list(STATEMENTS)), predicates()), min_size=2, max_size=4
    ),
    query=predicates(),
    deletion_vectors=st.booleans(),
    partitioned=st.booleans(),
)
def test_changes_since_a_version_lead_from_it_to_the_next(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[Any, ...]]],
    appended: list[tuple[Any, ...]],
    statements: list[tuple[str, Predicate]],
    query: Predicate,
    deletion_vectors: bool,
    partitioned: bool,
):
    path = str(tmp_path_factory.getbasetemp() / f"changed-{next(_numbers)}")
    build_table(
        spark,
        path,
        SCHEMA,
        files,
        deletion_vectors=deletion_vectors,
        partition_by=("p",) if partitioned else (),
        properties={PROPERTY: "true"},
    )
    for number, (kind, condition) in enumerate(statements):
        spark.sql(STATEMENTS[kind].format(t=f"delta.`{path}`", c=condition.sql))
        if number == 0:
            append_file(spark, path, SCHEMA, appended)
    live: Counter[str] = Counter()
    for version in log.versions(path):
        feed = changes(spark, path, startingVersion=version, endingVersion=version)
        live = apply_changes(live, feed)
        assert live == rows_at(spark, path, version)
    everything = changes(spark, path, startingVersion=0)
    assert apply_changes(Counter(), everything) == live
    # A filter on the changes is a filter on their rows, whatever files it skips.
    filtered = Counter(map(repr, everything.where(query.sql).collect()))
    plain = spark.createDataFrame(everything.collect(), everything.schema)
    assert filtered == Counter(map(repr, plain.where(query.sql).collect()))
