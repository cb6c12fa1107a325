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
from deltaic.spark.told import Told


class Committer:
    """Implements ``io.deltaic.spark.bridge.Committer``. Its methods run on any thread.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    """

    def __init__(self, api: Any) -> None:
        self._api = api

    def plan(self, session: Any, request_json: str) -> str:
        """Decide, before any data is written, what a write will commit besides files."""

        def decide() -> Mapping[str, Any]:
            body = json.loads(request_json)
            request = WriteRequest.from_json(body)
            tables = JvmTables(self._api, session, Told.from_json(body["told"], request.table))
            tables.retry_policy()  # a setting that is not valid is refused before data is written
            return plan_write(request, tables, _now_ms()).to_json()

        return reply(decide)

    def commit(self, session: Any, handle: Any, told_json: str) -> str:
        """Make a prepared commit a version of its table."""

        def decide() -> Mapping[str, Any]:
            told = Told.from_json(json.loads(told_json))
            tables = JvmTables(self._api, session, told, handle)
            prepared = JvmPreparedCommit(handle, told.summary)
            result = commit(prepared, tables, tables.retry_policy())
            return {
                "version": result.version,
                "skipped": result.skipped,
                "attempts": result.attempts,
            }

        return reply(decide)

    def run(self, session: Any, command: str, arguments_json: str) -> str:
        """Run a command that begins in the JVM."""

        def decide() -> Mapping[str, Any]:
            tables = JvmTables(self._api, session)
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
