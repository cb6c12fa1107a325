"""The Python API does what that of delta-spark does, method by method and rule by rule."""

from __future__ import annotations

import ast
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delta_table_methods import METHODS, PRELUDE
from tests.support.delta_table_rules import ERRORS, RULES
from tests.support.spark_process import SparkProcess, SparkProcessError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count()

OURS = "from deltaic.tables import DeltaTable, IdentityGenerator\n"
THEIRS = "from delta.tables import DeltaTable, IdentityGenerator\n"

#: What delta-spark does where Deltaic differs (``docs/guide/migrating.md``), by method.
DIFFERENT = {
    "isDeltaTable": "is true for what is inside the directory of a table",
    "restoreToTimestamp": "refuses a time after the last commit",
    "clone": "returns an object of Java",
    "cloneAtVersion": "has no deep clones",
    "cloneAtTimestamp": "has no deep clones",
    "createOrReplace": "refuses other columns at a path",
    "upgradeTableProtocol": "reduces the versions to those that the features require",
}

#: The classes of the error that the last statement raises, or None.
RAISED = """
{set_up}
try:
    {last}
except Exception as problem:
    result = [each.__name__ for each in type(problem).__mro__]
else:
    result = None
"""

#: The rows that a table has in the end.
ROWS = """
result = [result, sorted(map(str, spark.read.format("delta").load(path).collect()))]
"""

#: The operations in its history.
OPERATIONS = """
history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
result.append([row.operation for row in history])
"""


def in_both(
    spark: SparkSession, delta_spark: SparkProcess, folder: Path, code: str
) -> tuple[Any, Any]:
    """Return what the code finds in a session of each engine, each on a table of its own."""
    name = f"python_api_{next(_numbers)}"
    names: dict[str, Any] = {"spark": spark, "path": str(folder / "ours"), "name": name}
    exec(OURS + PRELUDE + code, names)
    theirs = delta_spark.run(
        THEIRS + PRELUDE + code, path=str(folder / "theirs"), name=f"their_{name}"
    )
    return json.loads(json.dumps(names["result"])), theirs


def raised(code: str) -> str:
    """Return code that finds what the last statement raises; those before must not fail."""
    *set_up, last = (ast.unparse(each) for each in ast.parse(code).body)
    return RAISED.format(set_up="\n".join(set_up), last=last)


@pytest.mark.parametrize("method", [each for each in METHODS if each not in DIFFERENT])
def test_method_does_what_that_of_delta_spark_does(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, method: str
) -> None:
    code, _ = METHODS[method]
    ours, theirs = in_both(spark, delta_spark, tmp_path, code + ROWS + OPERATIONS)
    assert ours == theirs


@pytest.mark.thorough
@pytest.mark.parametrize("method", DIFFERENT)
def test_listed_method_differs(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, method: str
) -> None:
    code, _ = METHODS[method]
    try:
        ours, theirs = in_both(spark, delta_spark, tmp_path, code + ROWS + OPERATIONS)
    except SparkProcessError:
        return  # delta-spark refuses what Deltaic does
    assert ours != theirs, "take it off the list"


@pytest.mark.parametrize("rule", RULES)
def test_rule_of_the_documentation_holds(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, rule: str
) -> None:
    ours, theirs = in_both(spark, delta_spark, tmp_path, RULES[rule] + ROWS)
    assert ours == theirs


@pytest.mark.thorough
@pytest.mark.parametrize("error", ERRORS)
def test_error_can_be_caught_as_that_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, error: str
) -> None:
    ours, theirs = in_both(spark, delta_spark, tmp_path, raised(ERRORS[error]))
    assert ours is not None
    assert theirs is not None
    assert not {"NameError", "SyntaxError"} & {*ours, *theirs}, "the code is wrong"
    # delta-spark leaves some errors to Py4J.
    assert theirs[0] in ours or theirs[0] == "Py4JJavaError"
