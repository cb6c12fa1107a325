"""Commands whose first attempt to commit is left to the JVM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaic.commands.registry import run_command
from deltaic.commit.transaction import CommitResult, FirstAttempt, RetryPolicy
from deltaic.exceptions import DeltaError
from tests.support.definitions import command_arguments, create, schema
from tests.support.memory_log import MemoryLog


def run(log: MemoryLog, command: str, **arguments: Any) -> dict[str, Any]:
    named = command_arguments(log, command, **arguments)
    return run_command(command, named, log, RetryPolicy(), lambda: 7_000)


def attempted(log: MemoryLog, command: str, **arguments: Any) -> FirstAttempt:
    """Run a command as the JVM does and return the attempt that is left to it."""
    log.is_of_command = True
    before = log.version
    response = json.loads(json.dumps(run(log, command, **arguments)))
    assert log.version == before
    return FirstAttempt.from_json(response["firstAttempt"])


def without_identity(lines: list[str]) -> list[dict[str, Any]]:
    """Return actions without the ids that are new in each attempt."""
    actions = [json.loads(line) for line in lines]
    for action in actions:
        action.get("commitInfo", {}).pop("txnId", None)
        action.get("metaData", {}).pop("id", None)
    return actions


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("alterProperties", {"set": {"owner": "me"}, "unset": []}),
        ("addConstraint", {"name": "positive", "expression": "id > 0"}),
        ("dropFeature", {"feature": "domainMetadata"}),
    ],
)
def test_attempt_has_the_actions_that_python_would_commit(
    command: str, arguments: dict[str, Any]
) -> None:
    log, same = (create(feature_domainMetadata="supported") for _ in range(2))
    for table in (log, same):
        table.session_metadata = {"usermetadata": "of the session"}
    attempt = attempted(log, command, **arguments)
    run(same, command, **arguments)
    committed = without_identity(list(same.commits_lines[same.version]))
    expected = [a for a in without_identity(list(attempt.lines)) if "metaData" not in a]
    assert expected == [a for a in committed if "metaData" not in a]
    assert attempt.version == same.version
    [info] = same.actions(same.version, "commitInfo")
    assert info["userMetadata"] == "of the session"
    left = [json.loads(line)["metaData"] for line in attempt.lines if '{"metaData"' in line]
    made = same.actions(same.version, "metaData")
    assert [{**body, "id": None} for body in left] == [{**body, "id": None} for body in made]


def test_attempt_to_create_a_table_is_version_0() -> None:
    attempt = attempted(MemoryLog(), "createTable", schema=schema("id"))
    assert attempt.version == 0 and attempt.summary.read_version == -1
    assert [next(iter(json.loads(line))) for line in attempt.lines] == [
        "commitInfo",
        "protocol",
        "metaData",
    ]


def test_command_that_changes_nothing_leaves_no_attempt() -> None:
    log = create()
    log.is_of_command = True
    skipped = CommitResult(log.version, skipped=True)
    assert run(log, "alterProperties", set={}, unset=["nothing"]) == skipped.to_json()


def test_what_must_not_be_committed_is_refused_before_the_attempt() -> None:
    log = create()
    log.is_of_command = True
    with pytest.raises(DeltaError, match="UNKNOWN_TABLE_PROPERTY"):
        run(log, "alterProperties", set={"delta.nowhere": "1"}, unset=[])


def test_backfill_commits_and_the_rest_is_left() -> None:
    log = create()
    log.is_of_command = True
    before = log.version
    response = run(log, "alterProperties", set={"delta.enableRowTracking": "true"}, unset=[])
    assert log.version > before
    attempt = FirstAttempt.from_json(response["firstAttempt"])
    assert attempt.version == log.version + 1


def test_maintenance_that_cannot_be_planned_does_not_fail_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = create()
    monkeypatch.setattr(log.maintained, "settings", lambda: 1 / 0)
    attempt = attempted(log, "alterProperties", set={"owner": "me"}, unset=[])
    assert attempt.maintenance is None
