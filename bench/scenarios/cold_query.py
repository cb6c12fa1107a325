"""The first query of a fresh process on a small table, and the same query again."""

from __future__ import annotations

import time
from statistics import median
from typing import ClassVar

from bench.lab import Lab, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _warm_queries(settings: Settings) -> int:
    return 1 if settings.quick else 10


class ColdQuery(Scenario):
    """The first query: class loading, log, planning, scan; with the start of its session, too."""

    name: ClassVar[str] = "cold-query"
    rounds: ClassVar[int] = 7
    fresh_process: ClassVar[bool] = True

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return rows for the first query, alone and with its session, and its repetitions."""
        return (
            Measure("cold", "first query of a fresh process, 10 files"),
            Measure("start", "start of a session and that query"),
            Measure("warm", "the same query, repeated in that process"),
        )

    def prepare(self, lab: Lab) -> None:
        """Make the small table."""
        small_table.prepare(lab)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Query at once, without accessing the storage before; then query again."""
        path = lab.prepared_path(small_table.NAME)
        cold_s, answer = stopwatch(lambda: small_table.query(lab, path))
        start_s = time.perf_counter() - lab.began_s
        warm = [
            stopwatch(lambda: small_table.query(lab, path))
            for _ in range(_warm_queries(lab.settings))
        ]
        warm_s = [seconds for seconds, _ in warm]
        return Measurement(
            timings={"cold": cold_s, "start": start_s, "warm": median(warm_s)},
            answers={"cold": answer, "warm": warm[-1][1]},
            laps={"warm": warm_s},
        )
