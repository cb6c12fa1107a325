"""The committer, as the JVM calls it.

Every reply is JSON: ``{"ok": ...}`` or ``{"error": ...}``. No exception crosses the callback, where
it would lose its class and its parameters.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.plan_write import WriteRequest, plan_write
from deltaic.commands.registry import run_command
from deltaic.commit.transaction import commit
from deltaic.exceptions import INTERNAL_ERROR, DeltaError, error
from deltaic.spark.ports import JvmPreparedCommit, JvmTables


class Committer:
    """Implements ``io.deltaic.spark.bridge.Committer``. Its methods run on any thread.

    Parameters
    ----------
    tables
        Returns the tables as the session of the calling thread sees them.
    """

    def __init__(self, tables: Callable[[], JvmTables]) -> None:
        self._tables = tables

    def plan(self, request_json: str) -> str:
        """Decide, before any data is written, what a write will commit besides files."""

        def decide() -> Mapping[str, Any]:
            request = WriteRequest.from_json(json.loads(request_json))
            tables = self._tables()
            tables.retry_policy()  # a setting that is not valid is refused before data is written
            return plan_write(request, tables, _now_ms()).to_json()

        return reply(decide)

    def commit(self, prepared: Any) -> str:
        """Make a prepared commit a version of its table."""

        def decide() -> Mapping[str, Any]:
            tables = self._tables()
            result = commit(JvmPreparedCommit(prepared), tables, tables.retry_policy())
            return {
                "version": result.version,
                "skipped": result.skipped,
                "attempts": result.attempts,
            }

        return reply(decide)

    def run(self, command: str, arguments_json: str) -> str:
        """Run a command that begins in the JVM."""

        def decide() -> Mapping[str, Any]:
            tables = self._tables()
            arguments = json.loads(arguments_json)
            return run_command(command, arguments, tables, tables.retry_policy(), _now_ms())

        return reply(decide)

    class Java:
        """What Py4J asks of a class that implements a Java interface."""

        implements = ("io.deltaic.spark.bridge.Committer",)


def reply(decide: Callable[[], Mapping[str, Any]]) -> str:
    """Return what `decide` returns, or the error it raises, as the JVM expects it."""
    try:
        return json.dumps({"ok": decide()}, ensure_ascii=False)
    except DeltaError as problem:
        found = problem
    except Exception as problem:
        text = "".join(traceback.format_exception(problem))
        found = error(INTERNAL_ERROR, reason=repr(problem), traceback=text)
    return json.dumps(
        {
            "error": {
                "condition": found.condition,
                "parameters": found.parameters,
                "message": str(found),
                "pythonClass": type(found).__name__,
            }
        },
        ensure_ascii=False,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
