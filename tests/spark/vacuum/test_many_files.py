"""VACUUM and RESTORE of so many files that jobs delete them or look for them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import DeltaError, TableStateError
from tests.support import log
from tests.support.jobs import failures_of_cancelled
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of
from tests.support.vacuumed import COPIES, UNCHECKED, backdate, stored, table_of_many_files


def garbage(table: str, count: int) -> Path:
    folder = Path(table, "p=garbage")
    folder.mkdir()
    for n in range(count):
        (folder / f"part-{n}.parquet").touch()
    backdate(table, 500)
    return folder


def test_missing_files_are_named(spark: SparkSession, table: str) -> None:
    table_of_many_files(spark, table)
    gone = (COPIES[3], COPIES[1111])
    for name in gone:
        Path(table, name).unlink()
    with pytest.raises(TableStateError) as raised:
        spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    assert raised.value.parameters["count"] == "2"
    assert all(name in raised.value.parameters["files"] for name in gone)
    assert log.newest(table) == 2


def test_files_are_counted_and_what_cannot_be_deleted_is_an_error(
    spark: SparkSession, table: str
) -> None:
    table_of_many_files(spark, table)
    folder = garbage(table, 2000)
    # To the file system, no file; an inventory may say otherwise.
    (folder / "stuck.parquet" / "below").mkdir(parents=True)
    found = [(str(path), 0, False, 0) for path in folder.iterdir()]
    schema = "path STRING, length LONG, isDir BOOLEAN, modificationTime LONG"
    spark.createDataFrame(found, schema).createOrReplaceTempView("i")
    with session_settings(spark, UNCHECKED):
        with pytest.raises(DeltaError, match=r"stuck\.parquet"):
            spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS USING INVENTORY i")
        assert [path.name for path in folder.iterdir()] == ["stuck.parquet"]
        backdate(table, 500)
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    assert not folder.exists()
    metrics = log.commit_info(table)["operationMetrics"]
    # And three directories.
    assert metrics["numDeletedFiles"] == str(len(COPIES) + 1 + 3)
    assert log.files_in(table, ".parquet") == set()


@pytest.mark.parametrize("statement", ["RESTORE TABLE {t} TO VERSION AS OF 1", "VACUUM {t}"])
def test_group_that_was_cancelled_between_two_jobs_leaves_the_table_as_it_was(
    spark: SparkSession, table: str, statement: str
) -> None:
    table_of_many_files(spark, table)
    garbage(table, 2000)
    before, files = rows_of(spark, table), stored(table)
    group = f"cancelled-before-{statement.split()[0]}"
    context = spark.sparkContext

    def run_in_cancelled_group() -> None:
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)
        spark.sql(statement.replace("{t}", f"delta.`{table}`"))

    failures = failures_of_cancelled(spark, group, run_in_cancelled_group, lambda: True)
    assert [group in str(problem) for problem in failures] == [True]
    assert stored(table) == files
    assert rows_of(spark, table) == before
    operations = [log.commit_info(table, v)["operation"] for v in log.versions(table)[3:]]
    assert operations == ([] if "RESTORE" in statement else ["VACUUM START", "VACUUM END"])


def test_cancelled_vacuum_deletes_nothing_more(spark: SparkSession, table: str) -> None:
    build_table(spark, table, "id INT", [[(1,)]], deletion_vectors=False)
    folder = garbage(table, 30_000)
    group = "cancelled-vacuum"
    failures = failures_of_cancelled(
        spark,
        group,
        lambda: spark.sql(f"VACUUM delta.`{table}`"),
        lambda: len(list(folder.iterdir())) < 30_000,
    )
    left = len(list(folder.iterdir()))
    assert [group in str(problem) for problem in failures] == [True]
    assert 0 < left < 30_000
    time.sleep(0.5)
    assert len(list(folder.iterdir())) == left
    assert log.commit_info(table)["operationParameters"]["status"] == "FAILED"
    spark.sql(f"VACUUM delta.`{table}`")
    assert list(folder.iterdir()) == []
    assert spark.table(f"delta.`{table}`").count() == 1
