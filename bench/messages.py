"""The messages between the runner and a worker: one JSON object per line, one reply per request."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal

from bench.scenarios.scenario import Measurement

Verb = Literal["prepare", "measure", "stop"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a worker."""

    verb: Verb
    scenario: str = ""
    repetition: int = 0

    def to_line(self) -> str:
        """Return the request as a line."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Request:
        """Read a line that `to_line` wrote."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request. A worker also sends one when its session is ready.

    Attributes
    ----------
    error
        A traceback, or None if the request succeeded.
    measurement
        The result of ``measure``.
    facts
        When the session is ready: its versions, and the seconds of its start.
    """

    error: str | None = None
    measurement: Measurement | None = None
    facts: dict[str, str | float] = field(default_factory=dict)

    def to_line(self) -> str:
        """Return the reply as a line."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Reply:
        """Read a line that `to_line` wrote."""
        fields = json.loads(line)
        measurement = fields["measurement"]
        return cls(
            fields["error"],
            None if measurement is None else Measurement(**measurement),
            fields["facts"],
        )
