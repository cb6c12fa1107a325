"""Older versions of a table, by number and by time, from SQL and from the reader."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import TableWithOracle, assert_same_rows, build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: When the commits of `travelled` were made: an hour apart, in UTC.
START = dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.timezone.utc)
HOUR = dt.timedelta(hours=1)

#: Whether a version is refused when VACUUM may have deleted its files.
ENFORCES_RETENTION = "spark.deltaic.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

#: Rows in each version: five appended ones, two and one of them deleted, one more.
SIZES = [5, 3, 2, 3]


@pytest.fixture(scope="module", autouse=True)
def years_old_files_are_kept(spark: SparkSession) -> Iterator[None]:
    """Let these tests read versions that are older than any retention."""
    with session_settings(spark, {ENFORCES_RETENTION: "false"}):
        yield


@pytest.fixture(scope="module")
def travelled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    """A table of four versions, an hour apart."""
    path = str(tmp_path_factory.mktemp("travelled") / "table")
    table = build_with_oracle(spark, path, spark.range(0, 5, 1, 1), deletion_vectors=True)
    table.delete("id < 2")
    table.delete("id = 3")
    table.append(spark.range(9, 10))
    for version in log.versions(path):
        # A commit's time is that of its file, as long as the log does not carry times itself.
        seconds = (START + version * HOUR).timestamp()
        os.utime(log.commit_path(path, version), (seconds, seconds))
    # The engine may have cached other times: clear them.
    spark._jvm.io.deltaic.replay.DeltaLog.invalidate(  # type: ignore[union-attr]
        spark._jvm.org.apache.hadoop.fs.Path("file:" + path)  # type: ignore[union-attr]
    )
    return table


@pytest.fixture(scope="module")
def named(spark: SparkSession, travelled: TableWithOracle) -> Iterator[str]:
    """The same table by a name in the catalog."""
    spark.sql(f"CREATE TABLE travelled USING delta LOCATION '{travelled.path}'")
    yield "travelled"
    spark.sql("DROP TABLE travelled")


def at(time: dt.datetime) -> str:
    """Return a time as text without a zone, as UTC clocks show it."""
    return time.astimezone(dt.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def read(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)  # type: ignore[arg-type]


@pytest.mark.protocol("dv-proposal-sketch-1")
@pytest.mark.parametrize("version", range(4))
def test_version_number_gives_the_rows_of_that_version(
    spark: SparkSession, travelled: TableWithOracle, named: str, version: int
):
    answers = [
        read(spark, travelled.path, versionAsOf=version),
        read(spark, travelled.path, versionasof=str(version)),
        spark.sql(f"SELECT * FROM {travelled.sql_name} VERSION AS OF {version}"),
        spark.sql(f"SELECT * FROM {named} VERSION AS OF {version}"),
        spark.sql(f"SELECT * FROM {named} FOR SYSTEM_VERSION AS OF '{version}'"),
        spark.read.option("versionAsOf", version).table(named),
    ]
    for answer in answers:
        assert answer.count() == SIZES[version]


@pytest.mark.parametrize(
    ("after_version", "later"),
    [
        (0, dt.timedelta()),
        (0, HOUR / 2),
        (1, dt.timedelta()),
        (2, HOUR - dt.timedelta(seconds=1)),
        (3, dt.timedelta()),
    ],
)
def test_time_gives_the_last_version_made_until_then(
    spark: SparkSession,
    travelled: TableWithOracle,
    named: str,
    after_version: int,
    later: dt.timedelta,
):
    text = at(START + after_version * HOUR + later)
    answers = [
        read(spark, travelled.path, timestampAsOf=text),
        spark.sql(f"SELECT * FROM {travelled.sql_name} TIMESTAMP AS OF '{text}'"),
        spark.sql(f"SELECT * FROM {named} TIMESTAMP AS OF '{text}'"),
        spark.sql(f"SELECT * FROM {named} TIMESTAMP AS OF to_timestamp('{text}')"),
        spark.read.option("timestampAsOf", text).table(named),
    ]
    for answer in answers:
        assert answer.count() == SIZES[after_version]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_time_without_a_zone_is_one_of_the_session(
    spark: SparkSession, travelled: TableWithOracle, zone: str
):
    with session_settings(spark, {"spark.sql.session.timeZone": zone}):
        # The clocks of Berlin go from 2 to 3 in the night of these commits.
        text = (
            spark.sql(
                f"SELECT CAST(timestamp_seconds({(START + HOUR).timestamp():.0f}) AS STRING) AS s"
            )
            .collect()[0]
            .s
        )
        assert read(spark, travelled.path, timestampAsOf=text).count() == SIZES[1]
        sql = f"SELECT * FROM {travelled.sql_name} TIMESTAMP AS OF '{text}'"
        assert spark.sql(sql).count() == SIZES[1]


def test_date_means_the_begin_of_the_day(spark: SparkSession, travelled: TableWithOracle):
    with pytest.raises(Exception, match="DELTAIC_TIMESTAMP_BEFORE_EARLIEST"):
        read(spark, travelled.path, timestampAsOf="2024-03-31").count()
    # Midnight in New York is 04:00 UTC, after the last commit.
    with (
        session_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}),
        pytest.raises(Exception, match="DELTAIC_TIMESTAMP_AFTER_LATEST"),
    ):
        read(spark, travelled.path, timestampAsOf="2024-03-31").count()


@pytest.mark.parametrize("version", [4, 99])
def test_version_that_does_not_exist_is_an_error_that_says_which_do(
    spark: SparkSession, travelled: TableWithOracle, named: str, version: int
):
    for query in (
        lambda: read(spark, travelled.path, versionAsOf=version).collect(),
        lambda: spark.sql(f"SELECT * FROM {travelled.sql_name} VERSION AS OF {version}").collect(),
        lambda: spark.sql(f"SELECT * FROM {named} VERSION AS OF {version}").collect(),
    ):
        with pytest.raises(Exception, match=r"DELTAIC_VERSION_NOT_FOUND.*from 0 to 3"):
            query()


@pytest.mark.parametrize(
    ("time", "condition"),
    [
        (START - dt.timedelta(milliseconds=1), "DELTAIC_TIMESTAMP_BEFORE_EARLIEST"),
        (START + 3 * HOUR + dt.timedelta(milliseconds=1), "DELTAIC_TIMESTAMP_AFTER_LATEST"),
    ],
)
def test_time_out_of_range_is_an_error_that_says_what_the_range_is(
    spark: SparkSession, travelled: TableWithOracle, time: dt.datetime, condition: str
):
    for query in (
        lambda: read(spark, travelled.path, timestampAsOf=at(time)).collect(),
        lambda: spark.sql(
            f"SELECT * FROM {travelled.sql_name} TIMESTAMP AS OF '{at(time)}'"
        ).collect(),
    ):
        with pytest.raises(Exception, match=condition) as caught:
            query()
        assert "2024-03-31" in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"versionAsOf": "-1"},
        {"versionAsOf": "latest"},
        {"versionAsOf": "1.5"},
        {"timestampAsOf": "some day"},
        {"versionAsOf": "1", "timestampAsOf": "2024-03-31 01:30:00"},
    ],
    ids=str,
)
def test_option_that_names_no_version_is_refused(
    spark: SparkSession, travelled: TableWithOracle, options: dict[str, str]
):
    with pytest.raises(Exception, match=r"DELTAIC_INVALID_TIME_TRAVEL|INVALID_TIME_TRAVEL"):
        read(spark, travelled.path, **options).collect()


def test_one_query_reads_versions_of_one_table(spark: SparkSession, travelled: TableWithOracle):
    t = travelled.sql_name
    gone = spark.sql(
        f"SELECT id FROM {t} VERSION AS OF 0 EXCEPT SELECT id FROM {t} VERSION AS OF 2"
    )
    assert sorted(row.id for row in gone.collect()) == [0, 1, 3]
    joined = spark.sql(
        f"SELECT a.id FROM {t} VERSION AS OF 1 a JOIN {t} b ON a.id = b.id ORDER BY 1"
    )
    assert [row.id for row in joined.collect()] == [2, 4]


def test_older_version_stays_what_it_was_when_the_table_changes(spark: SparkSession, table: str):
    target = build_with_oracle(spark, table, spark.range(5), deletion_vectors=True)
    older = read(spark, table, versionAsOf=0).cache()
    try:
        target.delete("id = 1")
        assert older.count() == 5
        assert target.df().count() == 4
        assert read(spark, table, versionAsOf=0).count() == 5
        assert read(spark, table, versionAsOf=1).count() == 4
    finally:
        older.unpersist(blocking=True)


def test_dataframe_cached_after_a_change_is_not_taken_for_the_version_it_was_made_at(
    spark: SparkSession, table: str
):
    target = build_with_oracle(spark, table, spark.range(5))
    df = target.df()
    target.append(spark.range(5, 7))
    df.cache()
    try:
        assert df.count() == 7
        assert read(spark, table, versionAsOf=0).count() == 5
        assert target.df().count() == 7
    finally:
        df.unpersist(blocking=True)


def test_older_version_shows_its_own_columns(spark: SparkSession, table: str):
    spark.range(3).write.format("delta").save(table)
    writer = spark.range(2).selectExpr("id AS other", "'x' AS s").write.format("delta")
    writer.mode("overwrite").option("overwriteSchema", "true").save(table)
    assert_same_rows(read(spark, table, versionAsOf=0).collect(), spark.range(3).collect())
    assert read(spark, table).columns == ["other", "s"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {t} VERSION AS OF 0 WHERE id = 1",
        "INSERT INTO {t} VERSION AS OF 0 VALUES (1)",
        "UPDATE {t} VERSION AS OF 0 SET id = 1",
    ],
)
def test_older_version_cannot_be_changed(
    spark: SparkSession, travelled: TableWithOracle, statement: str
):
    before = log.contents(travelled.path)
    with pytest.raises(Exception, match=r"(?i)syntax|unsupported|not support"):
        spark.sql(statement.format(t=travelled.sql_name))
    assert log.contents(travelled.path) == before
