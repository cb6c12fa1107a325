"""The runner's end of a worker process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO

from bench.engines import Engine
from bench.messages import Reply, Request
from bench.settings import REPOSITORY, Settings

_STOP_TIMEOUT_S = 90


class WorkerError(Exception):
    """An engine failed to handle a request."""


class Worker:
    """One engine in its own process group, with its log in a file.

    If a request is not answered within the time limit, the group is killed and the request fails.
    """

    def __init__(self, engine: Engine, settings: Settings, log: Path, timeout_s: float) -> None:
        self.engine = engine
        self.prepared: set[str] = set()
        self._log = log
        self._timeout_s = timeout_s
        self._busy = True
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.worker", engine.name],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        try:
            self._write(settings.to_json() + "\n")
            self.facts = self._read_reply("start").facts
        except BaseException:
            self._kill()
            raise

    def __enter__(self) -> Worker:
        """Give the worker to a `with` block that stops it at its end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the worker."""
        self.stop()

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, request: Request) -> Reply:
        """Send a request and wait for its reply.

        Raises
        ------
        WorkerError
            If the work failed, the process died or the time limit passed.
        """
        self._busy = True
        self._write(request.to_line())
        return self._read_reply(f"{request.verb} {request.scenario}")

    def stop(self) -> None:
        """Ask an idle process to exit, and kill it after a timeout; kill a busy one at once."""
        try:
            if self.is_alive and not self._busy:
                self._write(Request("stop").to_line())
                self._process.wait(_STOP_TIMEOUT_S)
        except (WorkerError, subprocess.TimeoutExpired):
            pass
        finally:
            self._kill()

    def _write(self, text: str) -> None:
        try:
            _open(self._process.stdin).write(text)
            _open(self._process.stdin).flush()
        except BrokenPipeError as error:
            raise WorkerError(f"{self.engine.name} died; see {self._log}") from error

    def _read_reply(self, task: str) -> Reply:
        watchdog = threading.Timer(self._timeout_s, self._kill)
        watchdog.start()
        try:
            line = _open(self._process.stdout).readline()
        finally:
            watchdog.cancel()
        if not line:
            raise WorkerError(
                f"{self.engine.name} died or took over {self._timeout_s:g} s in '{task}'; "
                f"see {self._log}"
            )
        self._busy = False
        reply = Reply.from_line(line)
        if reply.error is not None:
            raise WorkerError(f"{self.engine.name} failed in '{task}':\n{reply.error}")
        return reply

    def _kill(self) -> None:
        """Kill the group before its leader is reaped, so that its id cannot be reused."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
