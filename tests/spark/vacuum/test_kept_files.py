"""VACUUM keeps what a version needs, however the log names it, and whatever commits meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of
from tests.support.vacuumed import UNCHECKED, backdate, changed_table, needed, stored, vector_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = [[(n * 10 + i, n) for i in range(10)] for n in range(4)]


def vacuum_all(spark: SparkSession, table: str) -> None:
    """Delete everything that the newest version does not need, of whatever age."""
    backdate(table, 500)
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")


def copied(table: str, target: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Copy a table with other actions, without what is derived from its commits."""
    shutil.copytree(table, target, ignore=shutil.ignore_patterns("_delta_log", "*.crc"))
    Path(target, "_delta_log").mkdir()
    for version in log.versions(table):
        lines = log.commit_path(table, version).read_text(encoding="utf-8").splitlines()
        actions = [json.loads(line) for line in lines]
        for action in actions:
            change(action)
        log.write_commit(target, version, *actions)
    return str(target)


@pytest.mark.parametrize("meanwhile", ["RESTORE", "nothing"])
def test_files_that_a_restore_adds_again_meanwhile_stay(
    spark: SparkSession, table: str, meanwhile: str
) -> None:
    build_table(spark, table, "id INT, n INT", FILES, deletion_vectors=False)
    before, first = rows_of(spark, table), log.newest(table)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id < 25")
    old = {Path(remove["path"]).name for remove in log.last_actions(table, "remove")}

    def others() -> None:
        if meanwhile == "RESTORE":
            spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {first}")

    with committed_meanwhile(others):
        vacuum_all(spark, table)
    kept = old & {path.name for path in log.stored_files(table)}
    assert kept == (old if meanwhile == "RESTORE" else set())
    if meanwhile == "RESTORE":
        assert rows_of(spark, table) == before


@pytest.mark.protocol("dv-functional-2")
def test_file_of_several_vectors_stays_until_the_last_is_gone(
    spark: SparkSession, table: str
) -> None:
    build_table(spark, table, "id INT, n INT", FILES)
    with session_settings(spark, {"spark.deltaic.deletionVectors.maxInlineBytes": "0"}):
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (1, 11, 21, 31)")
    vectors = {vector["offset"] for vector in vectors_of(table)}
    assert len(vectors) == 4 and len(log.files_in(table, ".bin")) == 1
    for n in range(4):
        vacuum_all(spark, table)
        assert len(log.files_in(table, ".bin")) == 1
        assert len(rows_of(spark, table)) == 36 - 9 * n
        spark.sql(f"DELETE FROM delta.`{table}` WHERE n = {n}")
    vacuum_all(spark, table)
    assert log.files_in(table, ".bin") == set()


def vectors_of(table: str) -> list[dict[str, Any]]:
    files = log.active_files(table)
    return [add["deletionVector"] for add in files if "deletionVector" in add]


@pytest.mark.parametrize("spelling", ["absolute", "through a link", "vector by path"])
def test_files_stay_that_the_log_names_by_absolute_paths(
    spark: SparkSession, table: str, tmp_path: Path, spelling: str
) -> None:
    changed_table(spark, table, **{"delta.enableChangeDataFeed": "false"})
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    root = link if spelling == "through a link" else target

    def change(line: dict[str, Any]) -> None:
        for action in (line.get("add"), line.get("remove")):
            if action and spelling != "vector by path":
                action["path"] = f"file://{root}/{action['path']}"
            vector = action and action.get("deletionVector")
            if vector and vector["storageType"] == "u" and spelling == "vector by path":
                path = f"file://{target}/{vector_file(vector['pathOrInlineDv'])}"
                vector |= {"storageType": "p", "pathOrInlineDv": path}

    expected, keep = rows_of(spark, table), needed(table, 0)
    changed = copied(table, target, change)
    assert rows_of(spark, changed) == expected
    assert stored(changed) > keep
    vacuum_all(spark, changed)
    assert stored(changed) == keep
    assert rows_of(spark, changed) == expected


def test_files_outside_of_the_table_stay(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """Another writer has put a file elsewhere, and removed it; a directory is linked, too."""
    build_table(spark, table, "id INT, n INT", FILES, deletion_vectors=False)
    outside = tmp_path / "outside"
    outside.mkdir()
    (name, *_) = sorted(add["path"] for add in log.active_files(table))
    shutil.copy(Path(table, name), outside / "data.parquet")

    def change(line: dict[str, Any]) -> None:
        if line.get("add", {}).get("path") == name:
            line["add"]["path"] = f"file://{outside}/data.parquet"

    changed = copied(table, tmp_path / "target", change)
    Path(changed, "linked").symlink_to(outside)
    assert len(rows_of(spark, changed)) == 40
    spark.sql(f"DELETE FROM delta.`{changed}`")
    vacuum_all(spark, changed)
    assert (outside / "data.parquet").exists()
    assert log.files_in(changed, ".parquet") <= {"data.parquet"}
    assert rows_of(spark, changed) == []


@pytest.mark.parametrize("kind", ["FULL", "LITE"])
def test_sidecars_and_checkpoints_stay(spark: SparkSession, table: str, kind: str) -> None:
    changed_table(spark, table, **{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"})
    await_maintenance(spark)
    expected = rows_of(spark, table)
    sidecars = set(Path(table, "_delta_log", "_sidecars").iterdir())
    in_log = {path for path in Path(table, "_delta_log").rglob("*") if path.is_file()}
    assert sidecars
    backdate(table, 500)
    with session_settings(spark, UNCHECKED):
        spark.sql(f"VACUUM delta.`{table}` {kind} RETAIN 0 HOURS")
    assert in_log <= set(Path(table, "_delta_log").rglob("*"))
    assert rows_of(spark, table) == expected
