"""A Jupyter kernel shows tables and errors, and interrupting a cell cancels its statement."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

START = """
from pyspark.sql import SparkSession
from deltaic import DeltaTable, configure_spark

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = configure_spark(builder).getOrCreate()
spark.range(20).repartition(2).write.format("delta").save({table!r})
table = DeltaTable.forPath(spark, {table!r})
table
"""

SLOW_UPDATE = """
import pathlib, time
from pyspark.sql.functions import udf

def slow(number):
    pathlib.Path({started!r}).touch()
    time.sleep(1)
    return -number

spark.udf.register("slow", udf(slow, "bigint"))
spark.sql("UPDATE delta.`{table}` SET id = slow(id)")
"""

AFTERWARDS = """
[table.toDF().count(), table.toDF().where("id < 0").count(), table.history().count()]
"""

CONFLICTING_CLAUSES = """
table.merge(spark.range(3).alias("s"), "true").execute()
"""

Messages = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def cells(tools_python: str, tmp_path_factory: pytest.TempPathFactory) -> list[Messages]:
    """What a notebook shows for each cell."""
    folder = tmp_path_factory.mktemp("notebook")
    table, started = str(folder / "table"), str(folder / "started")
    sources = [
        START.format(table=table),
        SLOW_UPDATE.format(table=table, started=started),
        AFTERWARDS,
        f"table.update(set={{'id': 'id + 100'}})\n{AFTERWARDS}",
        CONFLICTING_CLAUSES,
        "spark.stop()",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "PYSPARK_PYTHON": tools_python,
        "JUPYTER_RUNTIME_DIR": str(folder),
        "IPYTHONDIR": str(folder),
    }
    done = subprocess.run(
        [tools_python, str(Path(__file__).with_name("notebook_cells.py"))],
        input=json.dumps({"cells": sources, "interrupt_at": started}),
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    messages: list[Messages] = json.loads(done.stdout)
    return messages


def contents(messages: Messages, kind: str) -> list[dict[str, Any]]:
    return [content for message_kind, content in messages if message_kind == kind]


def test_table_is_shown_as_html(cells: list[Messages]) -> None:
    (shown,) = contents(cells[0], "execute_result")
    assert shown["data"]["text/plain"].startswith("DeltaTable.forPath(spark, ")
    assert ">2 (" in shown["data"]["text/html"], "the number of files"


def test_interrupting_a_cell_cancels_its_statement(cells: list[Messages]) -> None:
    (error,) = contents(cells[1], "error")
    assert error["ename"] == "KeyboardInterrupt"
    (unchanged,) = contents(cells[2], "execute_result")
    assert unchanged["data"]["text/plain"] == "[20, 0, 1]"
    (changed,) = contents(cells[3], "execute_result")
    assert changed["data"]["text/plain"] == "[20, 0, 2]", "the session goes on"


def test_error_has_its_class_and_says_what_to_do(cells: list[Messages]) -> None:
    (error,) = contents(cells[4], "error")
    assert error["ename"] == "InvalidArgumentError"
    assert "It takes at least one WHEN clause" in error["evalue"]
