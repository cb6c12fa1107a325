"""Errors: every condition has a class and a message, and every use fills the message."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltaic
from deltaic import exceptions
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
    assert error_class(condition).__name__ == CONDITIONS[condition]["pythonClass"]
    filled = render(condition, dict.fromkeys(message_parameters(condition), "VALUE"))
    assert filled.startswith(f"[{condition}] ")
    assert not re.search(r"<\w+>", filled)


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
    assert type(problem) is DeltaError
    assert str(problem) == "[DELTAIC_FROM_A_NEWER_JAR] table: /t"


def test_message_with_a_missing_parameter_keeps_its_name() -> None:
    assert "<table> is not a Delta table" in render("DELTAIC_NOT_A_TABLE", {})


def test_parameter_that_looks_like_one_is_not_filled_again() -> None:
    assert "<version> is not" in render(
        "DELTAIC_NOT_A_TABLE", {"table": "<version>", "version": "1"}
    )


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
