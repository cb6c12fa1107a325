"""The committer, which the JVM calls.

Every response is JSON: ``{"ok": ...}`` or ``{"error": ...}``. No exception crosses the callback,
where it would lose its class and its parameters.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from deltaic.commands.plan_write import WriteRequest, plan_write
from deltaic.commands.registry import run_command
from deltaic.commit.clock import wall_clock_ms
from deltaic.commit.transaction import commit
from deltaic.exceptions import INTERNAL_ERROR, DeltaError, error
from deltaic.spark.interned_strings import InternedStrings
from deltaic.spark.interrupts import interrupted_afterwards
from deltaic.spark.ports import JvmPreparedCommit, JvmTableAccess
from deltaic.spark.prefetched_state import CommandRequest, PrefetchedState


class Committer:
    """Implements ``io.deltaic.spark.commit.Committer``. Its methods run on any thread.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._strings = InternedStrings()

    def plan(self, session: Any, request_json: str) -> str:
        """Plan, before any data is written, what a write will commit besides files."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            request = WriteRequest.from_json(body)
            prefetched = replace(PrefetchedState.from_json(body["prefetched"]), table=request.table)
            tables = JvmTableAccess(self._api, session, prefetched)
            tables.require_valid_settings()
            return plan_write(request, tables, wall_clock_ms()).to_json()

        return self._answer(request_json, decide)

    def commit(self, session: Any, handle: Any, request_json: str) -> str:
        """Commit a prepared commit as a version of its table."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            prefetched = PrefetchedState.from_json(body)
            tables = JvmTableAccess(self._api, session, prefetched, handle)
            prepared = JvmPreparedCommit(handle, prefetched.summary)
            result = commit(prepared, tables, tables.retry_policy())
            return result.to_json()

        return self._answer(request_json, decide)

    def run(self, session: Any, command: str, request_json: str) -> str:
        """Run a command that the JVM calls."""

        def decide(body: dict[str, Any]) -> Mapping[str, Any]:
            request = CommandRequest.from_json(body)
            arguments = request.arguments
            prefetched = replace(
                request.prefetched or PrefetchedState(), table=arguments.get("table")
            )
            tables = JvmTableAccess(self._api, session, prefetched)
            return run_command(command, arguments, tables, tables.retry_policy(), wall_clock_ms)

        return self._answer(request_json, decide)

    def _answer(
        self, request_json: str, decide: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> str:
        with interrupted_afterwards():
            return self._strings.answer(request_json, lambda body: reply(decide, body))

    class Java:
        """Required by Py4J of a class that implements a Java interface."""

        implements = ("io.deltaic.spark.commit.Committer",)


def reply(
    decide: Callable[[dict[str, Any]], Mapping[str, Any]], body: dict[str, Any]
) -> dict[str, Any]:
    """Return the response of `decide` to a request, or the error it raises, for the JVM."""
    try:
        return {"ok": decide(body)}
    except DeltaError as problem:
        found = problem
    except Exception as problem:
        trace = "".join(traceback.format_exception(problem))
        found = error(INTERNAL_ERROR, reason=repr(problem), traceback=trace)
    return {
        "error": {
            "condition": found.condition,
            "parameters": found.parameters,
            "message": str(found),
            "pythonClass": type(found).__name__,
        }
    }
