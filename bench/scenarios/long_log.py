"""Opening a table whose log has many commits and no checkpoint."""

from __future__ import annotations

from typing import ClassVar

from bench import table_log
from bench.lab import Lab
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

_NAME = "long-log"


def _commits(settings: Settings) -> int:
    return 50 if settings.quick else 1_000


class LongLog(Scenario):
    """Listing and parsing many commits, in a warm session that has not read the table before."""

    name: ClassVar[str] = _NAME
    rounds: ClassVar[int] = 7

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the one row."""
        title = f"open a log of {_commits(settings):,} commits without a checkpoint and plan"
        return (Measure("open", title),)

    def prepare(self, lab: Lab) -> None:
        """Write the log."""
        if lab.engine.is_delta:
            commits = _commits(lab.settings)
            lab.prepared(_NAME, lambda path: table_log.write_long(lab, path, commits))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Plan a query on a clone that was not read before."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"{_NAME}-{repetition}")
        lab.storage.clone(lab.prepared_path(_NAME), path)
        file = _commits(lab.settings) // 2
        seconds, answer = lab.timed(lambda: table_log.plan(lab, path, file))
        lab.storage.delete(path)
        return Measurement(timings={"open": seconds}, answers={"open": answer})
