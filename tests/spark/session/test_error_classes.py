"""Classes, conditions and SQLSTATEs of errors, as PySpark shows them without our Python package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from deltaic.exceptions import render
from deltaic.resources import load_json
from deltaic.session import spark_settings
from tests.support.spark_process import COMMON_SETTINGS, SparkProcess

#: Runs statements, the last of which fails, and returns what PySpark raises.
FAIL = """
result = None
try:
    for text in statements:
        eval(text) if text.startswith("spark.") else spark.sql(text).collect()
except Exception as e:
    result = {
        "classes": [c.__name__ for c in type(e).__mro__],
        "module": type(e).__module__,
        "condition": getattr(e, "getCondition", lambda: None)(),
        "state": getattr(e, "getSqlState", lambda: None)(),
        "parameters": getattr(e, "getMessageParameters", lambda: None)(),
        "context": getattr(e, "getQueryContext", lambda: None)(),
        "message": e.getMessage() if hasattr(e, "getMessage") else None,
        "our package": "deltaic" in __import__("sys").modules,
        "text": str(e),
    }
"""


@pytest.fixture(scope="module")
def plain_pyspark() -> Iterator[SparkProcess]:
    """A session with the jar and its settings, whose process never imports our package."""
    settings = {**COMMON_SETTINGS, **spark_settings()}
    with SparkProcess(settings=settings, engine="none") as process:
        yield process


def failure(process: SparkProcess, *statements: str) -> dict[str, Any]:
    found = process.run(FAIL, statements=list(statements))
    assert found is not None, "nothing failed"
    return dict(found)


def test_missing_table_is_an_analysis_exception(plain_pyspark: SparkProcess, table: str) -> None:
    found = failure(plain_pyspark, f"spark.read.format('delta').load('{table}').count()")
    assert "AnalysisException" in found["classes"]
    assert found["module"] == "pyspark.errors.exceptions.captured"
    assert found["condition"] == "DELTAIC_NOT_A_TABLE"
    assert found["state"] == "42P01"
    assert found["parameters"] == {"table": f"file:{table}"}
    assert found["context"] == []
    assert found["message"] == found["text"].split("\n\nJVM stacktrace")[0]
    assert not found["our package"]
    assert found["text"].startswith(f"[DELTAIC_NOT_A_TABLE] file:{table} is not a Delta table")
    assert "SQLSTATE: 42P01" in found["text"]


CREATE = "CREATE TABLE delta.`{t}` (id INT NOT NULL, v TINYINT) USING delta"
FILL = "INSERT INTO delta.`{t}` VALUES (1, 1)"
CHECK = "ALTER TABLE delta.`{t}` ADD CONSTRAINT small CHECK (id < 100)"
REPLACE = (
    "spark.sql('SELECT 1 id, 1Y v').write.format('delta').mode('overwrite')"
    ".option('replaceWhere', 'id > 5').save('{t}')"
)


@pytest.mark.parametrize(
    ("statements", "name", "condition", "state"),
    [
        (
            ["INSERT INTO delta.`{t}` VALUES (500, 1)"],
            "SparkRuntimeException",
            "CHECK_VIOLATED",
            "23001",
        ),
        (["UPDATE delta.`{t}` SET id = 500"], "SparkRuntimeException", "CHECK_VIOLATED", "23001"),
        (
            ["UPDATE delta.`{t}` SET id = NULL"],
            "SparkRuntimeException",
            "NOT_NULL_VIOLATED",
            "23502",
        ),
        (
            ["INSERT INTO delta.`{t}` SELECT CAST(NULL AS INT), 1"],
            "SparkRuntimeException",
            "NOT_NULL_VIOLATED",
            "23502",
        ),
        (
            ["UPDATE delta.`{t}` SET v = id + 1000"],
            "ArithmeticException",
            "VALUE_DOES_NOT_FIT",
            "22003",
        ),
        ([REPLACE], "AnalysisException", "REPLACE_WHERE_MISMATCH", "44000"),
        (
            ["spark.read.format('delta').option('versionAsOf', 99).load('{t}').count()"],
            "AnalysisException",
            "VERSION_NOT_FOUND",
            "22003",
        ),
        (
            ["SELECT * FROM delta.`{t}` VERSION AS OF 99"],
            "AnalysisException",
            "VERSION_NOT_FOUND",
            "22003",
        ),
        (
            ["ALTER TABLE delta.`{t}` ADD CONSTRAINT small CHECK (id < 9)"],
            "AnalysisException",
            "CONSTRAINT_EXISTS",
            "42710",
        ),
        (
            ["ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('delta.nothing' = '1')"],
            "AnalysisException",
            "UNKNOWN_TABLE_PROPERTY",
            "F0000",
        ),
        (
            [
                "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
                "DELETE FROM delta.`{t}`",
            ],
            "UnsupportedOperationException",
            "APPEND_ONLY",
            "42809",
        ),
        (
            ["spark.read.format('delta').option('readChangeFeed', 'x').load('{t}').count()"],
            "IllegalArgumentException",
            "CHANGES_OPTION_INVALID",
            "22023",
        ),
    ],
)
def test_error_has_the_class_condition_and_state_of_its_kind(
    plain_pyspark: SparkProcess,
    table: str,
    statements: list[str],
    name: str,
    condition: str,
    state: str,
) -> None:
    found = failure(plain_pyspark, *(s.format(t=table) for s in [CREATE, FILL, CHECK, *statements]))
    assert (found["classes"][0], found["condition"]) == (name, f"DELTAIC_{condition}"), found[
        "text"
    ]
    assert found["state"] == state
    assert found["message"].startswith(f"[DELTAIC_{condition}] ")
    assert found["message"] == found["text"].split("\n\nJVM stacktrace")[0]
    assert found["parameters"] and not found["our package"]


#: What `getMessage()` of PySpark's exceptions asks of Spark, for each condition.
MESSAGES = """
helper = getattr(spark._jvm.org.apache.spark, "SparkThrowableHelper")
result = {
    name: helper.getMessage(name, parameters) for name, parameters in conditions.items()
}
"""


def test_every_condition_has_its_message_in_sparks_list(
    plain_pyspark: SparkProcess, table: str
) -> None:
    failure(plain_pyspark, f"spark.read.format('delta').load('{table}').count()")
    conditions = {
        name: {p: f"<{p}> $1" for p in re.findall(r"<(\w+)>", "\n".join(condition["message"]))}
        for name, condition in load_json("error-conditions.json").items()
    }
    found = plain_pyspark.run(MESSAGES, conditions=conditions)
    assert found == {name: render(name, parameters) for name, parameters in conditions.items()}


#: What a Thrift server and a Connect server make of an exception, by Spark's own code.
SERVERS = """
try:
    spark.sql(statement).collect()
except Exception as e:
    jvm, throwable = spark._jvm, e._origin
    formats = getattr(jvm, "org.apache.spark.ErrorMessageFormat")
    helper = getattr(jvm, "org.apache.spark.SparkThrowableHelper")
    connect = getattr(getattr(jvm, "org.apache.spark.sql.connect.utils.ErrorUtils$"), "MODULE$")
    nobody = getattr(jvm, "scala.Option").empty()
    details = connect.throwableToFetchErrorDetailsResponse(throwable, False).getErrors(0)
    result = {
        "thrift": helper.getMessage(throwable, formats.STANDARD()),
        "connect": connect.buildStatusFromThrowable(throwable, nobody).toString(),
        "class": details.getSparkThrowable().getErrorClass(),
        "state": details.getSparkThrowable().getSqlState(),
        "hierarchy": list(details.getErrorTypeHierarchyList()),
    }
"""


@pytest.mark.parametrize(
    ("statement", "condition", "state", "name"),
    [
        (
            "SELECT * FROM delta.`{t}` VERSION AS OF 99",
            "DELTAIC_VERSION_NOT_FOUND",
            "22003",
            "org.apache.spark.sql.AnalysisException",
        ),
        (
            "INSERT INTO delta.`{t}` VALUES (500, 1)",
            "DELTAIC_CHECK_VIOLATED",
            "23001",
            "org.apache.spark.SparkRuntimeException",
        ),
    ],
)
def test_clients_of_thrift_and_connect_get_condition_and_state(
    plain_pyspark: SparkProcess, table: str, statement: str, condition: str, state: str, name: str
) -> None:
    for made in (CREATE, FILL, CHECK):
        plain_pyspark.run("spark.sql(text)", text=made.format(t=table))
    found = plain_pyspark.run(SERVERS, statement=statement.format(t=table))
    thrift = json.loads(found["thrift"])
    assert (thrift["errorClass"], thrift["sqlState"]) == (condition, state)
    assert thrift["messageParameters"]["table"] == f"file:{table}"
    assert (found["class"], found["state"]) == (condition, state)
    assert name in found["hierarchy"]
    assert condition in found["connect"] and name in found["connect"]
