"""The syntax for reading an older version, and the errors when it cannot be read."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import TableWithOracle, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTING = "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

#: The same under the name that users of delta-spark know.
ENFORCES_RETENTION = [f"spark.deltaic.{_SETTING}", f"spark.databricks.delta.{_SETTING}"]

#: How long ago the versions of `daily` were committed, and how many rows they have.
AGES = [dt.timedelta(days=3), dt.timedelta(days=2), dt.timedelta(hours=1)]
SIZES = [5, 4, 3]


def set_commit_times(spark: SparkSession, path: str, ages: list[dt.timedelta]) -> list[dt.datetime]:
    """Make the versions of a table as old as said; return when they were committed."""
    now = dt.datetime.now(dt.timezone.utc)
    times = [(now - age).replace(microsecond=0) for age in ages]
    for version, time in enumerate(times):
        os.utime(log.commit_path(path, version), (time.timestamp(), time.timestamp()))
    # The engine may have cached other times: clear them.
    spark._jvm.io.deltaic.replay.DeltaLog.invalidate(  # type: ignore[union-attr]
        spark._jvm.org.apache.hadoop.fs.Path("file:" + path)  # type: ignore[union-attr]
    )
    return times


@pytest.fixture(scope="module")
def daily(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    path = str(tmp_path_factory.mktemp("daily") / "table")
    table = build_with_oracle(spark, path, spark.range(0, 5, 1, 1), deletion_vectors=True)
    table.delete("id = 0")
    table.delete("id = 1")
    return table


@pytest.fixture(scope="module")
def times(spark: SparkSession, daily: TableWithOracle) -> list[dt.datetime]:
    return set_commit_times(spark, daily.path, AGES)


@pytest.fixture(scope="module")
def name(spark: SparkSession, daily: TableWithOracle) -> Iterator[str]:
    spark.sql(f"CREATE TABLE daily USING delta LOCATION '{daily.path}'")
    yield "daily"
    spark.sql("DROP TABLE daily")


@pytest.mark.parametrize(
    ("time", "version"),
    [
        ("current_timestamp()", 2),
        ("now() - INTERVAL '1' DAY", 1),
        ("current_timestamp() - INTERVAL 60 HOURS", 0),
        ("date_sub(current_date(), 1)", 1),
        ("CAST(current_timestamp() - INTERVAL 1 DAY AS STRING)", 1),
        ("CAST('{second}' AS TIMESTAMP)", 1),
        ("to_timestamp('{second}')", 1),
        ("TIMESTAMP'{second}'", 1),
        ("'{second}'", 1),
        ("coalesce(CAST(NULL AS TIMESTAMP), to_timestamp(concat('{second}', '.5')))", 1),
    ],
)
def test_any_constant_is_a_time(
    spark: SparkSession,
    daily: TableWithOracle,
    name: str,
    times: list[dt.datetime],
    time: str,
    version: int,
):
    constant = time.format(second=times[1].strftime("%Y-%m-%d %H:%M:%S"))
    if version == 2:
        # The clock has moved on since the last commit: that is no time of this table.
        pattern = "DELTAIC_TIMESTAMP_AFTER_LATEST"
        for table in (daily.sql_name, name):
            with pytest.raises(Exception, match=pattern):
                spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF {constant}").collect()
        return
    for table in (daily.sql_name, name, f"default.{name}", f"spark_catalog.default.{name}"):
        df = spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF {constant}")
        assert df.count() == SIZES[version]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM (SELECT * FROM {t} TIMESTAMP AS OF now() - INTERVAL 1 DAY) x",
        "SELECT count(*) FROM {t} TIMESTAMP AS OF now() - INTERVAL 1 DAY AS x WHERE x.id >= 0",
        "WITH c AS (SELECT * FROM {t} TIMESTAMP AS OF now() - INTERVAL 1 DAY)"
        " SELECT count(*) FROM c",
        "SELECT (SELECT count(*) FROM {t} TIMESTAMP AS OF now() - INTERVAL 1 DAY)",
    ],
)
def test_time_is_evaluated_wherever_the_table_stands(
    spark: SparkSession, daily: TableWithOracle, times: list[dt.datetime], query: str
):
    assert spark.sql(query.format(t=daily.sql_name)).collect()[0][0] == SIZES[1]


def test_view_of_a_relative_time_moves_with_the_clock(
    spark: SparkSession, daily: TableWithOracle, times: list[dt.datetime]
):
    spark.sql(
        "CREATE VIEW a_day_ago AS"
        f" SELECT * FROM {daily.sql_name} TIMESTAMP AS OF now() - INTERVAL 1 DAY"
    )
    try:
        assert spark.table("a_day_ago").count() == SIZES[1]
    finally:
        spark.sql("DROP VIEW a_day_ago")


@pytest.mark.parametrize(
    ("time", "condition"),
    [
        ("rand()", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"),
        (
            "to_timestamp('some day')",
            "PARSE_TIMESTAMP|INVALID_INPUT|TIME_TRAVEL",
        ),
        ("no_such_function()", "UNRESOLVED_ROUTINE"),
        ("array(1)", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"),
    ],
)
def test_what_is_no_time_is_said_to_be_none(
    spark: SparkSession, daily: TableWithOracle, time: str, condition: str
):
    with pytest.raises(Exception, match=condition):
        spark.sql(f"SELECT * FROM {daily.sql_name} TIMESTAMP AS OF {time}")


def suffixes(version: int, times: list[dt.datetime]) -> list[str]:
    return [f"@v{version}", f"@V{version}", times[version].strftime("@%Y%m%d%H%M%S000")]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_suffix_asks_for_a_version(
    spark: SparkSession, daily: TableWithOracle, name: str, times: list[dt.datetime], version: int
):
    for suffix in suffixes(version, times):
        dfs = [
            spark.read.format("delta").load(f"{daily.path}{suffix}"),
            spark.sql(f"SELECT * FROM delta.`{daily.path}{suffix}`"),
            spark.table(f"`{name}{suffix}`"),
            spark.sql(f"SELECT * FROM default.`{name}{suffix}`"),
        ]
        for df in dfs:
            assert df.count() == SIZES[version]


def test_suffix_with_a_time_is_one_of_the_session(
    spark: SparkSession, daily: TableWithOracle, times: list[dt.datetime]
):
    berlin = times[1].astimezone(dt.timezone(dt.timedelta(hours=5)))
    with session_settings(spark, {"spark.sql.session.timeZone": "+05:00"}):
        path = daily.path + berlin.strftime("@%Y%m%d%H%M%S000")
        assert spark.read.format("delta").load(path).count() == SIZES[1]


@pytest.mark.parametrize("suffix", ["@v0", "@20240101000000000"])
def test_table_whose_own_path_ends_like_a_suffix_is_that_table(
    spark: SparkSession, tmp_path: Path, suffix: str
):
    build_with_oracle(spark, str(tmp_path / "t"), spark.range(3))
    own = build_with_oracle(spark, str(tmp_path / f"t{suffix}_"), spark.range(5))
    os.rename(own.path, tmp_path / f"t{suffix}")
    df = spark.read.format("delta").load(str(tmp_path / f"t{suffix}"))
    assert df.count() == 5


@pytest.mark.parametrize("path", ["{t}@v", "{t}@3", "{t}@2024-01-01", "{t}@v1x", "{t}-none@v0"])
def test_what_is_no_suffix_is_part_of_the_path(
    spark: SparkSession, daily: TableWithOracle, path: str
):
    with pytest.raises(Exception, match="DELTAIC_NOT_A_TABLE"):
        spark.read.format("delta").load(path.format(t=daily.path))


@pytest.mark.parametrize("suffix", ["@v9", "@20991231000000000", "@20249931000000000"])
def test_suffix_without_such_a_version_is_an_error(
    spark: SparkSession, daily: TableWithOracle, times: list[dt.datetime], suffix: str
):
    pattern = "VERSION_NOT_FOUND|TIMESTAMP_AFTER_LATEST|INVALID_TIME_TRAVEL"
    with pytest.raises(Exception, match=pattern):
        spark.read.format("delta").load(daily.path + suffix)


def test_version_asked_for_twice_is_refused(
    spark: SparkSession, daily: TableWithOracle, name: str, times: list[dt.datetime]
):
    twice: list[Callable[[], DataFrame]] = [
        lambda: spark.read.format("delta").option("versionAsOf", 1).load(f"{daily.path}@v1"),
        lambda: spark.sql(f"SELECT * FROM delta.`{daily.path}@v1` VERSION AS OF 1"),
        lambda: spark.sql(f"SELECT * FROM `{name}@v1` TIMESTAMP AS OF now() - INTERVAL 1 DAY"),
    ]
    for query in twice:
        with pytest.raises(Exception, match="DELTAIC_INVALID_TIME_TRAVEL"):
            query()


def test_older_version_is_no_delta_table_object(
    spark: SparkSession, daily: TableWithOracle, name: str
):
    with pytest.raises(Exception, match="DELTAIC_NOT_A_TABLE"):
        DeltaTable.forPath(spark, f"{daily.path}@v1")
    for older in (f"`{name}@v1`", f"delta.`{daily.path}@v1`"):
        with pytest.raises(Exception, match=r"DELTAIC_NAME_IS_NOT_A_TABLE.*version 1"):
            DeltaTable.forName(spark, older)


def test_write_to_an_older_version_is_refused(
    spark: SparkSession, daily: TableWithOracle, name: str, times: list[dt.datetime]
):
    before = log.contents(daily.path)
    row = spark.range(1)
    text = times[1].strftime("%Y-%m-%d %H:%M:%S")
    writes: list[Callable[[], object]] = [
        lambda: row.write.format("delta").mode("append").option("versionAsOf", 1).save(daily.path),
        lambda: (
            row.write.format("delta")
            .mode("overwrite")
            .option("TIMESTAMPASOF", text)
            .save(daily.path)
        ),
        lambda: row.write.format("delta").mode("append").save(f"{daily.path}@v1"),
        lambda: row.write.format("delta").option("versionAsOf", 1).insertInto(name),
        lambda: row.write.format("delta").mode("append").option("versionAsOf", 1).saveAsTable(name),
    ]
    for write in writes:
        with pytest.raises(Exception, match="DELTAIC_WRITE_TO_OLDER_VERSION"):
            write()
    statements = [
        f"INSERT INTO delta.`{daily.path}@v1` VALUES (1)",
        f"DELETE FROM delta.`{daily.path}@v1` WHERE id = 4",
        f"UPDATE `{name}@v1` SET id = 1",
    ]
    for statement in statements:
        with pytest.raises(Exception, match=r"(?i)older version|not support|UNSUPPORTED"):
            spark.sql(statement)
    assert log.contents(daily.path) == before
    assert not os.path.exists(f"{daily.path}@v1")


def test_option_of_a_reader_does_not_let_a_table_be_created(spark: SparkSession, table: str):
    with pytest.raises(Exception, match="DELTAIC_WRITE_TO_OLDER_VERSION"):
        spark.range(1).write.format("delta").option("versionAsOf", 0).save(table)
    assert not os.path.exists(table)


@pytest.mark.parametrize("setting", ENFORCES_RETENTION)
def test_version_whose_files_may_be_gone_is_refused_unless_the_user_knows_better(
    spark: SparkSession, table: str, setting: str
):
    build_with_oracle(spark, table, spark.range(5)).append(spark.range(5, 7))
    [old, _] = set_commit_times(spark, table, [dt.timedelta(days=8), dt.timedelta(days=7.5)])
    text = old.strftime("%Y-%m-%d %H:%M:%S")
    reads: list[Callable[[], DataFrame]] = [
        lambda: spark.read.format("delta").option("versionAsOf", 0).load(table),
        lambda: spark.read.format("delta").load(f"{table}@v0"),
        lambda: spark.sql(f"SELECT * FROM delta.`{table}` TIMESTAMP AS OF '{text}'"),
    ]
    for read in reads:
        with pytest.raises(Exception, match=r"BEYOND_FILE_RETENTION.*(?s:.*)168 hours"):
            read()
        with session_settings(spark, {setting: "false"}):
            assert read().count() == 5
    # The newest version is always there, however old it is.
    assert spark.read.format("delta").option("versionAsOf", 1).load(table).count() == 7


def test_table_that_keeps_its_files_longer_can_be_read_longer(spark: SparkSession, table: str):
    kept = {"delta.deletedFileRetentionDuration": "interval 9 days"}
    build_with_oracle(spark, table, spark.range(5), options=kept).append(spark.range(5, 7))
    set_commit_times(spark, table, [dt.timedelta(days=8), dt.timedelta(days=7.5)])
    assert spark.read.format("delta").option("versionAsOf", 0).load(table).count() == 5
