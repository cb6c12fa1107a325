"""Many commits on one table: whether the last ones take longer than the first."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import ClassVar

from bench.bridge import BridgeClock
from bench.engines import SUBJECT
from bench.lab import Lab, collect, stopwatch
from bench.scenarios import small_table
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _count(settings: Settings) -> int:
    return 10 if settings.quick else 500


def _share(settings: Settings) -> int:
    """Return the number of commits in each of the two measures."""
    return _count(settings) // 10


class ManyCommits(Scenario):
    """One-row appends, checkpoints included; the first tenth of them warms up."""

    name: ClassVar[str] = "many-commits"
    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 0

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row for the second tenth of the commits and one for the last."""
        count, share = _count(settings), _share(settings)
        return (
            Measure("early", f"one-row commits {share + 1} to {2 * share} of {count}"),
            Measure(
                "late",
                f"one-row commits {count - share + 1} to {count} of {count}",
                baseline="early",
            ),
        )

    def prepare(self, lab: Lab) -> None:
        """Do nothing: each repetition creates its own table."""

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Append row after row; then read all of them."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"many-commits-{repetition}")
        lab.create(path, small_table.SCHEMA)

        def append(row_id: int) -> None:
            lab.append(small_table.rows(lab.spark, row_id, row_id + 1, 1), path)

        is_subject = lab.engine.name == SUBJECT
        clock = BridgeClock()
        with clock.running() if is_subject else nullcontext():
            laps = [stopwatch(partial(append, row_id))[0] for row_id in range(_count(lab.settings))]
        share = _share(lab.settings)
        answer = collect(lab.read(path, small_table.SCHEMA).selectExpr("count(*)", "sum(id)"))
        lab.storage.delete(path)
        return Measurement(
            timings={"early": sum(laps[share : 2 * share]), "late": sum(laps[-share:])},
            answers={"commits": answer},
            laps={"commits": laps},
            metrics={"bridge_us_per_commit": clock.per_commit_s(lab) * 1e6} if is_subject else {},
        )
