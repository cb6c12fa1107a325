"""A disk that fails, lies, stalls or is full at its n-th call.

What was acknowledged is there, what failed for certain is not, and the next write works. Every call
that changes anything below the table gets its turn.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.faults.conftest import BASE_ROWS, BASE_VERSIONS, SCHEMA, _Copies, require_kept
from tests.faults.operations import OPERATIONS
from tests.support import log
from tests.support.faulty import ARM, RENAMING
from tests.support.maintenance import await_maintenance
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import append_file, in_order, rows_of
from tests.support.valid_logs import require_valid_logs

_CHANGES = "create|write|force|close|link|rename|move|delete|mkdir"

#: No log store can detect a write that is reported as done and is not.
_NAMES = "link|rename|move|delete|mkdir"

#: What needs space.
_GROWS = "create|write|mkdir"

#: Lets the fault strike in each n-th call, from the first to the last, and returns the outcome of
#: the write, what is seen of the table then, and after the next write.
SWEEP = """
import shutil
from deltaic.exceptions import DeltaError
from deltaic.tables import DeltaTable

faults = spark._jvm.io.deltaic.faults.Faults

def seen(table):
    return eval(what, {"spark": spark, "table": table, "DeltaTable": DeltaTable})

def attempt(code, table):
    try:
        exec(code, {"spark": spark, "table": table})
        return None
    except DeltaError as problem:
        return problem.condition
    except Exception as problem:
        return type(problem).__name__

result, nth, struck = [], 1, 1
while struck:
    table = f"{folder}/{nth}"
    shutil.copytree(template, table)
    faults.arm(calls, f"{folder}/{nth}/", nth, effect)
    outcome = attempt(operation, prefix + table)
    struck = faults.disarm()
    found = seen(prefix + table)
    again = attempt(next_write, prefix + table)
    result.append([nth, struck, outcome, found, again, seen(table)])
    if not again:
        shutil.rmtree(table)
    nth += 1
"""

_ROWS = "sorted(list(row) for row in spark.read.format('delta').load(table).collect())"

_COLUMNS = (
    "spark.read.format('delta').load(table).columns"
    " if DeltaTable.isDeltaTable(spark, table) else []"
)

_NEXT = "spark.sql(f\"INSERT INTO delta.`{table}` VALUES (999, 'next')\")"


def listed(rows: Iterable[tuple[int, str]]) -> list[list[Any]]:
    """Return rows as the sweep returns them."""
    return sorted([n, v] for n, v in rows)


def check(
    reached: list[Any],
    before: list[Any],
    after: list[Any],
    next_write: Callable[[list[Any]], list[Any]],
    figures: Counter[str],
) -> Iterator[str | None]:
    """Check what each fault came to, and yield the outcomes."""
    assert reached[-1][1] == 0, "it ends with a write without a fault"
    for nth, _, outcome, found, again, finally_ in reached:
        where = f"call {nth}: {outcome}"
        assert found in (before, after), f"{where}: torn, doubled or lost: {found}"
        if outcome is None:
            require_kept(figures, found == after, where)
        elif outcome != "DELTAIC_COMMIT_STATE_UNKNOWN":
            assert found == before, f"{where}: it failed, and is there"
        assert again is None, f"{where}: the next write fails: {again}"
        require_kept(figures, finally_ == next_write(found), f"{where}: {finally_}")
        yield outcome


@pytest.mark.parametrize(
    ("operation", "prefix", "calls", "effect"),
    [
        ("append", "", _CHANGES, "fail before"),
        ("append", "", _CHANGES, "fail after"),
        ("append", "", _NAMES, "lie"),
        ("append", "", _GROWS, "full"),
        ("append", RENAMING, _CHANGES, "fail before"),
        ("append", RENAMING, _CHANGES, "fail after"),
        ("append", RENAMING, _NAMES, "lie"),
        ("append", RENAMING, _GROWS, "full"),
        ("delete", "", _CHANGES, "fail before"),
        ("delete", RENAMING, _CHANGES, "fail after"),
        ("overwrite", RENAMING, _NAMES, "lie"),
        ("merge", "", _CHANGES, "fail after"),
        ("replaceWhere", RENAMING, _GROWS, "full"),
        ("RTAS", "", _CHANGES, "fail before"),
        ("TRUNCATE", "", _CHANGES, "fail after"),
        ("REPLACE USING", RENAMING, _CHANGES, "fail before"),
        ("backfill", "", _NAMES, "fail before"),
        ("append v2", RENAMING, _NAMES, "fail before"),
        ("append listed", "", _NAMES, "lie"),
    ],
    ids=[
        "append by link: fails before",
        "append by link: fails after",
        "append by link: lies",
        "append by link: full",
        "append by rename: fails before",
        "append by rename: fails after",
        "append by rename: lies",
        "append by rename: full",
        "delete by link: fails before",
        "delete by rename: fails after",
        "overwrite by rename: lies",
        "merge that rewrites files by link: fails after",
        "replaceWhere by rename: full",
        "RTAS by link: fails before",
        "TRUNCATE by link: fails after",
        "REPLACE USING by rename: fails before",
        "row IDs given by link: fails before",
        "append with V2 checkpoints by rename: fails before",
        "append with lists of files by link: lies",
    ],
)
def test_a_disk_that_fails_at_any_call_loses_nothing_and_tears_nothing(
    faulty: SparkProcess,
    templates: Path,
    tmp_path: Path,
    figures: Counter[str],
    operation: str,
    prefix: str,
    calls: str,
    effect: str,
) -> None:
    code, kind, after = OPERATIONS[operation]
    assert kind is not None
    reached = faulty.run(
        SWEEP,
        template=str(templates / kind),
        folder=str(tmp_path),
        operation=code,
        next_write=_NEXT,
        what=_ROWS,
        prefix=prefix,
        calls=calls,
        effect=effect,
    )
    outcomes = list(
        check(
            reached,
            listed(BASE_ROWS),
            listed(after),
            lambda found: [*found, [999, "next"]],
            figures,
        )
    )
    figures["faults"] += len(outcomes) - 1
    figures["commits"] += len(outcomes) + outcomes.count(None)
    assert len(outcomes) > 10, "the write was watched"


_DEFINITIONS = {
    "CREATE TABLE": (
        "spark.sql(f'CREATE TABLE delta.`{table}` (id BIGINT, v STRING) USING delta')",
        None,
        ["id", "v"],
    ),
    "ALTER TABLE": (
        "spark.sql(f'ALTER TABLE delta.`{table}` ADD COLUMN w INT')",
        "plain",
        ["id", "v", "w"],
    ),
}

#: Creates the table if the fault has prevented that.
_NEXT_DEFINITION = """
spark.sql(f'CREATE TABLE IF NOT EXISTS delta.`{table}` (id BIGINT, v STRING) USING delta')
spark.sql(f"INSERT INTO delta.`{table}` (id, v) VALUES (999, 'next')")
"""


@pytest.mark.parametrize("effect", ["fail before", "fail after", "lie"])
@pytest.mark.parametrize("prefix", ["", RENAMING], ids=["by link", "by rename"])
@pytest.mark.parametrize("statement", _DEFINITIONS)
def test_a_definition_on_a_disk_that_fails_at_any_call_is_there_or_not(
    faulty: SparkProcess,
    templates: Path,
    tmp_path: Path,
    figures: Counter[str],
    statement: str,
    prefix: str,
    effect: str,
) -> None:
    code, kind, after = _DEFINITIONS[statement]
    template = templates / kind if kind else tmp_path / "empty"
    template.mkdir(exist_ok=True)
    reached = faulty.run(
        SWEEP,
        template=str(template),
        folder=str(tmp_path),
        operation=code,
        next_write=_NEXT_DEFINITION,
        what=_COLUMNS,
        prefix=prefix,
        calls=_NAMES if effect == "lie" else _CHANGES,
        effect=effect,
    )
    before = ["id", "v"] if kind else []
    outcomes = list(check(reached, before, after, lambda found: found or ["id", "v"], figures))
    figures["faults"] += len(outcomes) - 1
    figures["commits"] += len(outcomes) + outcomes.count(None)
    assert len(outcomes) > 3, "the statement was watched"


_ENTRY = rf"/_delta_log/{BASE_VERSIONS:020d}\.json$"


@pytest.mark.parametrize(
    ("prefix", "call"), [("", "link"), (RENAMING, "rename")], ids=["link", "rename"]
)
def test_a_writer_that_stalls_where_its_version_gets_its_name_loses_the_race_and_takes_the_next(
    spark: SparkSession,
    faulty: SparkProcess,
    copy_of: _Copies,
    tmp_path: Path,
    figures: Counter[str],
    prefix: str,
    call: str,
) -> None:
    table, release = copy_of("vectors"), tmp_path / "release"
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(
            faulty.run,
            ARM + "spark.range(100, 103, 1, 1).selectExpr('id', \"'slow' AS v\")"
            ".write.format('delta').mode('append').save(table)\n"
            "result = spark._jvm.io.deltaic.faults.Faults.disarm()",
            table=prefix + table,
            fault=[call, _ENTRY, 1, f"stall {release}"],
        )
        try:
            deadline = time.monotonic() + 60
            while not list(Path(table, "_delta_log").glob(".*.json.*.tmp")):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            time.sleep(0.2)
            append_file(spark, table, SCHEMA, [(50, "fast")])
        finally:
            release.touch()
        assert writing.result() == 1
    slow = [(n, "slow") for n in range(100, 103)]
    assert rows_of(spark, table) == in_order([*BASE_ROWS, (50, "fast"), *slow])
    assert log.newest(table) == BASE_VERSIONS + 1
    figures["faults"] += 1
    figures["commits"] += 2


@pytest.mark.parametrize("prefix", ["", RENAMING], ids=["link", "rename"])
def test_a_writer_that_stalls_at_any_call_and_another_one_lose_nothing(
    spark: SparkSession,
    faulty: SparkProcess,
    templates: Path,
    tmp_path: Path,
    figures: Counter[str],
    prefix: str,
) -> None:
    expected = in_order([*OPERATIONS["append"][2], (50, "fast")])
    for nth in itertools.count(1):
        table, release = str(tmp_path / str(nth)), tmp_path / f"release-{nth}"
        shutil.copytree(templates / "vectors", table)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(
                faulty.run,
                ARM + OPERATIONS["append"][0] + "\nresult = None",
                table=prefix + table,
                fault=[_CHANGES, f"{table}/", nth, f"stall {release}"],
            )
            reached = Path(f"{release}.reached")
            while not (reached.exists() or writing.done()):
                time.sleep(0.02)
            stalls = reached.exists()
            try:
                append_file(spark, table, SCHEMA, [(50, "fast")])
            finally:
                release.touch()
            writing.result()
        require_kept(figures, rows_of(spark, table) == expected, f"call {nth}")
        assert log.newest(table) == BASE_VERSIONS + 1
        figures["commits"] += 2
        figures["faults"] += stalls
        if not stalls:
            break
    assert nth > 10, "the write was watched"
    await_maintenance(spark)
    require_valid_logs(tmp_path)


#: Three commits, the maintenance of the first of which stalls in the background.
_WRITE_IN_FRONT = """
import os, time
spark.conf.set("spark.deltaic.maintenance.background", "true")
try:
    for _ in range(3):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (999, 'next')")
finally:
    spark.conf.set("spark.deltaic.maintenance.background", "false")
deadline = time.monotonic() + 60
while not os.path.exists(reached):
    assert time.monotonic() < deadline
    time.sleep(0.02)
result = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").collect()[0].version
"""


def test_writes_go_on_while_a_checkpoint_stalls(
    spark: SparkSession, faulty: SparkProcess, copy_of: _Copies, tmp_path: Path
) -> None:
    table, release = copy_of("vectors"), tmp_path / "release"
    checkpoint = f"{BASE_VERSIONS:020d}.checkpoint.parquet"
    newest = faulty.run(
        ARM + _WRITE_IN_FRONT,
        table=table,
        reached=f"{release}.reached",
        fault=["create", rf"/\.{re.escape(checkpoint)}\.[^/]*\.tmp$", 1, f"stall {release}"],
    )
    try:
        assert newest == BASE_VERSIONS + 2
        assert not Path(table, "_delta_log", checkpoint).exists()
    finally:
        release.touch()
    deadline = time.monotonic() + 60
    while not Path(table, "_delta_log", checkpoint).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert rows_of(spark, table) == in_order([*BASE_ROWS, *[(999, "next")] * 3])


def test_a_disk_that_runs_full_fails_writes_until_there_is_space(
    spark: SparkSession, tmp_path: Path, figures: Counter[str]
) -> None:
    """A real one, of four megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        _fill(spark, disk, figures)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _fill(spark: SparkSession, disk: Path, figures: Counter[str]) -> None:
    ballast, table = disk / "ballast", str(disk / "table")
    ballast.write_bytes(b"\0" * (1 << 20))
    rows = 20_000
    expected: list[int] = []
    refused = 0
    for number in range(60):
        df = spark.range(number * rows, (number + 1) * rows, 1, 1)
        # Strings that do not compress: each commit takes about 200 kilobytes.
        df = df.selectExpr("id", "unhex(substr(sha1(string(id)), 1, 16)) AS v")
        try:
            df.write.format("delta").mode("append").save(table)
            expected.append(number)
        except Exception as problem:
            assert "No space left on device" in str(problem)
            refused += 1
        if refused == 3:
            ballast.unlink(missing_ok=True)
        if refused == 6:
            break
    figures["commits"] += len(expected)
    figures["faults"] += refused
    found = spark.read.format("delta").load(table).selectExpr(f"id DIV {rows} AS n")
    counts = {row["n"]: row["count"] for row in found.groupBy("n").count().collect()}
    whole = {number for number, count in counts.items() if count == rows}
    require_kept(figures, whole >= set(expected), f"of {expected}, {sorted(whole)} are whole")
    assert counts == dict.fromkeys(expected, rows)
    assert max(expected) > 3 + min(expected), json.dumps(expected)
    assert log.newest(table) == len(expected) - 1
