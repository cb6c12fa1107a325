"""Long phases of commands log how much is done; here each phase is long enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jvm_log import jvm_log
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, build_three_versions
from tests.support.vacuumed import UNCHECKED, backdate, changed_table, litter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, v STRING"


@pytest.fixture
def progress(spark: SparkSession) -> Iterator[Callable[[str, str], list[str]]]:
    """Returns what a statement logs of its progress on a table."""
    jvm = spark._jvm
    assert jvm is not None
    logs = getattr(getattr(jvm.io.deltaic.log, "Progress$"), "MODULE$")
    interval = logs.reportEveryMs()
    set_interval = getattr(logs, "reportEveryMs_$eq")
    set_interval(0)

    def lines_of(statement: str, table: str) -> list[str]:
        with jvm_log(spark) as lines:
            spark.sql(statement.replace("{t}", f"delta.`{table}`")).collect()
        found = re.findall(rf"Progress (.*), file:{re.escape(table)}: (.*)", "\n".join(lines))
        return [f"{phase}: {done}" for phase, done in found]

    yield lines_of
    set_interval(interval)


def test_vacuum(spark: SparkSession, table: str, progress: Callable[[str, str], list[str]]) -> None:
    litter(changed_table(spark, table))
    backdate(table, 500)
    with session_settings(spark, UNCHECKED):
        lite = progress("VACUUM {t} LITE RETAIN 0 HOURS DRY RUN", table)
        assert "VACUUM: find removed files: 7 of 7 commits" in lite
        full = progress("VACUUM {t} DRY RUN", table)
        assert "VACUUM: find files in use: 7 of 7 commits" in full
        assert "VACUUM: list directories: 1 of 1 directories" in full
        inventory = "USING INVENTORY (SELECT 'a.parquet' AS path UNION ALL SELECT 'b')"
        listed = progress(f"VACUUM {{t}} {inventory} DRY RUN", table)
        assert "VACUUM: read the inventory: 2 paths" in listed
        deleted = progress("VACUUM {t} LITE RETAIN 0 HOURS", table)
    assert any(re.match(r"VACUUM: delete \d+ files: \d+ of \d+ files", line) for line in deleted)


def test_restore(
    spark: SparkSession, table: str, progress: Callable[[str, str], list[str]]
) -> None:
    build_three_versions(spark, table, SCHEMA)
    lines = progress("RESTORE TABLE {t} TO VERSION AS OF 0", table)
    assert "RESTORE: compare the files of both versions: 5 of 5 files" in lines
    # And the files of two vectors, which version 0 does not have.
    assert "RESTORE: find missing files: 2 of 2 files" in lines


def test_generate(
    spark: SparkSession, table: str, progress: Callable[[str, str], list[str]]
) -> None:
    rows = [[(1, "a"), (2, "b")], [(3, "b")]]
    build_table(spark, table, SCHEMA, rows, deletion_vectors=False, partition_by=["v"])
    lines = progress("GENERATE symlink_format_manifest FOR TABLE {t}", table)
    assert "GENERATE: list the files: 3 files" in lines
    assert "GENERATE: write the manifests: 2 of 2 manifests" in lines
