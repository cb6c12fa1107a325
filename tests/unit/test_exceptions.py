"""Errors: every condition has a class and a message, and every use fills the message."""

from __future__ import annotations

import ast
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions import base

import deltaic
from deltaic import exceptions
from deltaic.arguments import assignments, column, file_system_settings, require_string
from deltaic.exceptions import DeltaError, error, error_class, render
from deltaic.resources import load_json
from deltaic.spark.committer import reply

CONDITIONS: dict[str, dict[str, Any]] = load_json("error-conditions.json")
PACKAGE = Path(deltaic.__file__).parent


def message_parameters(condition: str) -> set[str]:
    return set(re.findall(r"<([A-Za-z][A-Za-z0-9]*)>", "\n".join(CONDITIONS[condition]["message"])))


def uses() -> Iterator[Any]:
    """Find every call of `error` with a literal condition in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "error":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    given = {k.arg for k in node.keywords}
                    where = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                    yield pytest.param(first.value, given, id=where)


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_condition_has_a_class_and_a_message(condition: str) -> None:
    assert re.fullmatch(r"DELTAIC_[A-Z0-9_]+", condition)
    entry = CONDITIONS[condition]
    assert error_class(condition).__name__ == entry["pythonClass"]
    assert issubclass(error_class(condition), getattr(exceptions, entry["pythonClass"]))
    assert re.fullmatch(r"[0-9A-Z]{5}", entry["sqlState"])
    filled = render(condition, dict.fromkeys(message_parameters(condition), "VALUE"))
    assert filled.startswith(f"[{condition}] ")
    assert filled.endswith(f" SQLSTATE: {entry['sqlState']}")
    assert not re.search(r"<\w+>", filled)


def test_errors_point_to_no_page_that_the_wheel_lacks() -> None:
    strings = [line for c in CONDITIONS.values() for line in c["message"]]
    strings += load_json("unsupported-commands.json").values()
    assert not [text for text in strings if "docs/" in text or ".md" in text]


@pytest.mark.parametrize(("condition", "given"), list(uses()))
def test_use_of_a_condition_fills_its_message(condition: str, given: set[str]) -> None:
    assert condition in CONDITIONS
    assert message_parameters(condition) == given


@pytest.mark.parametrize(
    "condition", [c for c in CONDITIONS if "winnerOperation" in message_parameters(c)]
)
def test_conflict_fills_its_message(condition: str) -> None:
    known = {"table", "operation", "version", "winnerOperation", "detail"}
    assert message_parameters(condition) <= known
    assert issubclass(error_class(condition), exceptions.ConcurrentModificationError)


def test_error_names_condition_and_parameters() -> None:
    problem = error("DELTAIC_NOT_A_TABLE", table="/data/t")
    assert isinstance(problem, exceptions.TableStateError)
    assert problem.condition == "DELTAIC_NOT_A_TABLE"
    assert problem.parameters == {"table": "/data/t"}
    assert "/data/t is not a Delta table" in str(problem)


def test_unknown_condition_still_says_what_it_knows() -> None:
    problem = error("DELTAIC_FROM_A_NEWER_JAR", table="/t")
    assert type(problem).__name__ == "DeltaError"
    assert str(problem) == "[DELTAIC_FROM_A_NEWER_JAR] table: /t SQLSTATE: XXKDS"


#: The class of PySpark for each class of Spark that a condition may name.
PYSPARK = {
    "AnalysisException": base.AnalysisException,
    "IllegalArgumentException": base.IllegalArgumentException,
    "UnsupportedOperationException": base.UnsupportedOperationException,
    "ArithmeticException": base.ArithmeticException,
    "SparkRuntimeException": base.SparkRuntimeException,
    "ConcurrentModificationException": base.PySparkException,
}


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_error_is_of_the_class_of_pyspark_that_its_condition_names(condition: str) -> None:
    problem = error(condition, table="/t")
    assert isinstance(problem, PYSPARK[CONDITIONS[condition]["sparkClass"]])
    assert isinstance(problem, DeltaError)


def test_error_answers_what_pyspark_asks_of_errors() -> None:
    problem = error("DELTAIC_NOT_A_TABLE", table="/data/t")
    assert isinstance(problem, base.AnalysisException)
    assert problem.getCondition() == "DELTAIC_NOT_A_TABLE"
    with pytest.warns(FutureWarning, match="getCondition"):
        assert problem.getErrorClass() == "DELTAIC_NOT_A_TABLE"
    assert problem.getSqlState() == "42P01"
    assert problem.getMessageParameters() == {"table": "/data/t"}
    assert problem.getQueryContext() == []
    assert problem.getMessage() == str(problem) == problem.message == problem.desc
    assert str(problem).endswith("SQLSTATE: 42P01")


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
@pytest.mark.filterwarnings("ignore:Deprecated in 4.0.0:FutureWarning")
def test_every_public_method_of_pyspark_errors_answers(condition: str) -> None:
    problem = error(condition, table="/t")
    assert isinstance(problem, base.PySparkException)
    methods = [
        name
        for name, member in vars(base.PySparkException).items()
        if callable(member) and not name.startswith("_")
    ]
    answers = {name: getattr(problem, name)() for name in methods}
    assert answers["getCondition"] == answers["getErrorClass"] == condition
    assert answers["getBreakingChangeInfo"] is None


def test_message_with_a_missing_parameter_keeps_its_name() -> None:
    assert "<table> is not a Delta table" in render("DELTAIC_NOT_A_TABLE", {})


def test_parameter_that_looks_like_one_is_not_filled_again() -> None:
    assert "<version> is not" in render(
        "DELTAIC_NOT_A_TABLE", {"table": "<version>", "version": "1"}
    )


def test_what_a_terminal_does_not_show_is_spelled_out() -> None:
    text = str(error("DELTAIC_ACTION_MALFORMED", reason="a\nb", action="PAR1\x00\x15\ufffd{"))
    assert "a\nb" in text
    assert "PAR1\\u0000\\u0015\\ufffd{" in text


def test_error_survives_pickling() -> None:
    problem = error("DELTAIC_NOT_A_TABLE", table="/t")
    copy = pickle.loads(pickle.dumps(problem))
    assert type(copy) is type(problem)
    assert (copy.condition, copy.parameters, str(copy)) == (
        problem.condition,
        problem.parameters,
        str(problem),
    )


def test_invalid_argument_is_a_value_error() -> None:
    assert issubclass(exceptions.InvalidArgumentError, ValueError)


WRONG_TYPES: list[Callable[[], object]] = [
    lambda: column("condition", 3),  # type: ignore[arg-type]
    lambda: assignments("set", [("a", "1")]),  # type: ignore[arg-type]
    lambda: assignments("set", {1: "1"}),  # type: ignore[dict-item]
    lambda: assignments("set", {"a": 1}),  # type: ignore[dict-item]
    lambda: require_string("path", 3),
    lambda: file_system_settings("hadoopConf", "fs.s3a.path"),  # type: ignore[arg-type]
]

MISSING_VALUES: list[Callable[[], object]] = [
    lambda: column("condition", None),  # type: ignore[arg-type]
    lambda: assignments("set", None),
    lambda: assignments("set", {}),
    lambda: assignments("set", {"a": None}),  # type: ignore[dict-item]
    lambda: require_string("path", None),
    lambda: require_string("path", ""),
]


@pytest.mark.parametrize("call", WRONG_TYPES)
def test_argument_of_a_wrong_type_is_a_type_error(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert isinstance(raised.value, exceptions.ArgumentTypeError)
    assert isinstance(raised.value, exceptions.InvalidArgumentError)


@pytest.mark.parametrize("call", MISSING_VALUES)
def test_missing_value_is_a_value_error_and_no_type_error(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="DELTAIC_INVALID_ARGUMENT") as raised:
        call()
    assert isinstance(raised.value, exceptions.InvalidArgumentError)
    assert not isinstance(raised.value, TypeError)


@pytest.mark.parametrize(
    "name",
    [
        "DeltaConcurrentModificationException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    ],
)
def test_names_of_delta_spark_share_one_base(name: str) -> None:
    assert issubclass(getattr(exceptions, name), exceptions.ConcurrentModificationError)


def test_reply_carries_an_error_instead_of_raising_it() -> None:
    def fail(body: Any) -> Any:
        raise error("DELTAIC_NOT_A_TABLE", table="/t")

    body = reply(fail, {})["error"]
    assert body["condition"] == "DELTAIC_NOT_A_TABLE"
    assert body["parameters"] == {"table": "/t"}
    assert body["pythonClass"] == "TableStateError"


def test_reply_reports_a_bug_with_its_traceback() -> None:
    def fail(body: Any) -> Any:
        raise KeyError("nowhere")

    body = reply(fail, {})["error"]
    assert body["condition"] == "DELTAIC_INTERNAL_ERROR"
    assert "nowhere" in body["parameters"]["reason"]
    assert "def fail" not in body["message"] and "KeyError" in body["parameters"]["traceback"]


def test_reply_carries_the_answer() -> None:
    assert reply(lambda body: body, {"version": 3}) == {"ok": {"version": 3}}


def test_errors_are_of_pysparks_classes_before_there_is_a_session() -> None:
    program = (
        "import deltaic, sys\n"
        "assert 'py4j' not in sys.modules\n"
        "from pyspark.errors import AnalysisException\n"
        "try: raise deltaic.exceptions.error('DELTAIC_SCHEMA_MISSING', table='t')\n"
        "except AnalysisException as e: print(type(e).__name__)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == "InvalidArgumentError", ran.stderr


def test_no_name_of_a_resource_is_defined_twice() -> None:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
        return dict(pairs)

    resources = sorted((PACKAGE / "resources").glob("*.json"))
    assert len(resources) > 5
    for resource in resources:
        json.loads(resource.read_text(encoding="utf-8"), object_pairs_hook=unique)
