"""mack, whose functions import ``delta``: each does what its documentation says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import log
from tests.support.spark_process import SparkProcess

#: Runs a function on a table of the rows, and returns the rows that the table has then.
RUN = """
import mack
from delta import DeltaTable

spark.createDataFrame(rows, schema).coalesce(1).write.format("delta").options(**options).save(path)
table = DeltaTable.forPath(spark, path)
def frame(values, schema=schema):
    return spark.createDataFrame(values, schema)
def rows_of(table):
    return sorted(([str(v) for v in row] for row in table.toDF().collect()))
returned = eval(call)
returned = None if hasattr(returned, "toDF") else returned
result = [returned, rows_of(DeltaTable.forPath(spark, path))]
"""


def run(
    tools: SparkProcess,
    path: Path,
    call: str,
    rows: list[list[Any]],
    schema: str = "id INT, a STRING, b STRING",
    **options: str,
) -> list[Any]:
    """Return what the call returns, and the rows of the table after it."""
    returned: list[Any] = tools.run(
        RUN, path=str(path / "table"), call=call, rows=rows, schema=schema, options=options
    )
    return returned


TWICE = [[1, "A", "x"], [2, "A", "x"], [3, "B", "y"], [4, "B", "z"]]


def test_kill_duplicates(tools: SparkProcess, tmp_path: Path) -> None:
    _, rows = run(tools, tmp_path, "mack.kill_duplicates(table, ['a', 'b'])", TWICE)
    assert rows == [["3", "B", "y"], ["4", "B", "z"]]


def test_drop_duplicates_pkey(tools: SparkProcess, tmp_path: Path) -> None:
    _, rows = run(tools, tmp_path, "mack.drop_duplicates_pkey(table, 'id', ['a', 'b'])", TWICE)
    assert rows == [["1", "A", "x"], ["3", "B", "y"], ["4", "B", "z"]]


def test_drop_duplicates(tools: SparkProcess, tmp_path: Path) -> None:
    _, rows = run(tools, tmp_path, "mack.drop_duplicates(table, ['a'])", TWICE)
    assert [row[1] for row in rows] == ["A", "B"]


@pytest.mark.parametrize("target", ["target_path", "target_table"])
def test_copy_table(tools: SparkProcess, tmp_path: Path, target: str) -> None:
    name = str(tmp_path / "copy") if target == "target_path" else "copied"
    found = "forPath" if target == "target_path" else "forName"
    call = (
        f"(mack.copy_table(table, {target}={name!r}), rows_of(DeltaTable.{found}(spark, {name!r})),"
        f" DeltaTable.{found}(spark, {name!r}).detail().first().properties)"
    )
    (_, copied, properties), rows = run(
        tools, tmp_path, call, TWICE, **{"delta.appendOnly": "true"}
    )
    assert copied == rows
    assert properties == {"delta.appendOnly": "true"}
    tools.run("spark.sql('DROP TABLE IF EXISTS copied')")


def test_validate_append(tools: SparkProcess, tmp_path: Path) -> None:
    new = "frame([[5, 'C', 'w', 'new']], 'id INT, a STRING, b STRING, c STRING')"
    call = f"mack.validate_append(table, {new}, ['id'], ['c'])"
    _, rows = run(tools, tmp_path, call, TWICE[:1])
    assert rows == [["1", "A", "x", "None"], ["5", "C", "w", "new"]]


def test_append_without_duplicates(tools: SparkProcess, tmp_path: Path) -> None:
    call = "mack.append_without_duplicates(table, frame([[1, 'n', 'n'], [5, 'n', 'n']]), ['id'])"
    _, rows = run(tools, tmp_path, call, TWICE[:1])
    assert rows == [["1", "A", "x"], ["5", "n", "n"]]


def test_is_composite_key_candidate(tools: SparkProcess, tmp_path: Path) -> None:
    call = "[mack.is_composite_key_candidate(table, c) for c in (['a', 'b'], ['id'])]"
    assert run(tools, tmp_path, call, TWICE)[0] == [False, True]


def test_find_composite_key_candidates(tools: SparkProcess, tmp_path: Path) -> None:
    call = "mack.find_composite_key_candidates(table, ['id'])"
    rows = [[1, "A", "x"], [2, "A", "y"], [3, "B", "y"]]
    schema = "id INT, a STRING, b STRING, c INT"
    assert run(tools, tmp_path, call, [[*row, 1] for row in rows], schema)[0] == ["a", "b"]


def test_delta_file_sizes(tools: SparkProcess, tmp_path: Path) -> None:
    call = "(mack.delta_file_sizes(table), mack.show_delta_file_sizes(table))"
    (sizes, _), _ = run(tools, tmp_path, call, TWICE)
    (add,) = log.active_files(tmp_path / "table")
    assert sizes == {
        "size_in_bytes": add["size"],
        "number_of_files": 1,
        "average_file_size_in_bytes": add["size"],
    }


def test_with_md5_cols(tools: SparkProcess, tmp_path: Path) -> None:
    call = "mack.with_md5_cols(table, ['a', 'b']).first().md5_a_b"
    # printf 'A||x' | md5sum
    assert run(tools, tmp_path, call, TWICE[:1])[0] == "7b539307e7be5f015839cf146b9063a3"


def test_latest_version(tools: SparkProcess, tmp_path: Path) -> None:
    call = "(table.delete('id = 1'), mack.latest_version(table))[1]"
    assert run(tools, tmp_path, call, TWICE)[0] == 1


def test_constraint_append(tools: SparkProcess, tmp_path: Path) -> None:
    call = (
        "(spark.sql(f'ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (id > 0)'),"
        " frame([]).write.format('delta').save(path + '-bad'),"
        " mack.constraint_append(table, frame([[-1, 'n', 'n'], [5, 'n', 'n']]),"
        " DeltaTable.forPath(spark, path + '-bad')),"
        " rows_of(DeltaTable.forPath(spark, path + '-bad')))[3]"
    )
    quarantined, rows = run(tools, tmp_path, call, TWICE[:1])
    assert quarantined == [["-1", "n", "n"]]
    assert rows == [["1", "A", "x"], ["5", "n", "n"]]


@pytest.mark.parametrize(
    "call",
    [
        "mack.type_2_scd_upsert(table, updates, 'id', ['a'])",
        "mack.type_2_scd_generic_upsert(table, updates, 'id', ['a'], 'is_current',"
        " 'effective_time', 'end_time')",
    ],
    ids=["type_2_scd_upsert", "type_2_scd_generic_upsert"],
)
def test_type_2_scd_upsert(tools: SparkProcess, tmp_path: Path, call: str) -> None:
    schema = "id INT, a STRING, is_current BOOLEAN, effective_time STRING, end_time STRING"
    rows = [[1, "A", True, "2019", None], [2, "B", True, "2019", None]]
    updates = (
        "frame([[2, 'Z', '2020'], [3, 'C', '2020']], 'id INT, a STRING, effective_time STRING')"
    )
    _, found = run(tools, tmp_path, call.replace("updates", updates), rows, schema)
    assert found == [
        ["1", "A", "True", "2019", "None"],
        ["2", "B", "False", "2019", "2020"],
        ["2", "Z", "True", "2020", "None"],
        ["3", "C", "True", "2020", "None"],
    ]


def test_rename_delta_table(tools: SparkProcess, tmp_path: Path) -> None:
    call = "mack.rename_delta_table(table, 'renamed', path, spark_session=spark)"
    run(tools, tmp_path, call, TWICE)
    assert tools.run("result = spark.table('renamed').count()") == 4
    tools.run("spark.sql('DROP TABLE renamed')")
