"""The committer, as the JVM calls it.

Every reply is JSON: ``{"ok": ...}`` or ``{"error": ...}``. No exception crosses the callback, where
it would lose its class and its parameters.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.commands.plan_write import WriteRequest, plan_write
from deltaic.commands.registry import run_command
from deltaic.commit.clock import wall_clock_ms
from deltaic.commit.transaction import commit
from deltaic.exceptions import INTERNAL_ERROR, DeltaError, error
from deltaic.spark.ports import JvmPreparedCommit, JvmTables
from deltaic.spark.told import Told
from deltaic.spark.wide_texts import WideTexts


class Committer:
    """Implements ``io.deltaic.spark.bridge.Committer``. Its methods run on any thread.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._texts = WideTexts()

    def plan(self, session: Any, request_json: str) -> str:
        """Decide, before any data is written, what a write will commit besides files."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            request = WriteRequest.from_json(body)
            tables = JvmTables(self._api, session, Told.from_json(body["told"], request.table))
            tables.require_valid_settings()
            return plan_write(request, tables, wall_clock_ms()).to_json()

        return self._texts.answer(request_json, lambda body: reply(decide, body))

    def commit(self, session: Any, handle: Any, told_json: str) -> str:
        """Make a prepared commit a version of its table."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            told = Told.from_json(body)
            tables = JvmTables(self._api, session, told, handle)
            prepared = JvmPreparedCommit(handle, told.summary)
            result = commit(prepared, tables, tables.retry_policy())
            return {
                "version": result.version,
                "skipped": result.skipped,
                "attempts": result.attempts,
            }

        return self._texts.answer(told_json, lambda body: reply(decide, body))

    def run(self, session: Any, command: str, arguments_json: str) -> str:
        """Run a command that begins in the JVM."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            tables = JvmTables(self._api, session)
            return run_command(command, body, tables, tables.retry_policy(), wall_clock_ms)

        return self._texts.answer(arguments_json, lambda body: reply(decide, body))

    class Java:
        """What Py4J asks of a class that implements a Java interface."""

        implements = ("io.deltaic.spark.bridge.Committer",)


def reply(
    decide: Callable[[dict[str, Any]], Mapping[str, Any]], body: dict[str, Any]
) -> dict[str, Any]:
    """Return what `decide` makes of a question, or the error it raises, as the JVM expects it."""
    try:
        return {"ok": decide(body)}
    except DeltaError as problem:
        found = problem
    except Exception as problem:
        text = "".join(traceback.format_exception(problem))
        found = error(INTERNAL_ERROR, reason=repr(problem), traceback=text)
    return {
        "error": {
            "condition": found.condition,
            "parameters": found.parameters,
            "message": str(found),
            "pythonClass": type(found).__name__,
        }
    }
