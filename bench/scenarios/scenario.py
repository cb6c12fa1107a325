"""The base class of scenarios. A scenario runs in a worker; the runner reads its declarations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from bench.lab import Answer, Lab
from bench.settings import Settings

#: Stands for the measure's own baseline where a target names an engine.
OWN_BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Target:
    """The maximum of Deltaic's seconds, relative to another time of the same run.

    Attributes
    ----------
    engine
        The engine whose time it is; a run without it does not check the target. `OWN_BASELINE` is
        Deltaic's own time of the measure's baseline.
    times
        The maximum ratio to the other engine's seconds.
    free_s
        Seconds that are allowed in addition, because a ratio of very short times is not meaningful.
    """

    engine: str
    times: float
    free_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the report.

    Attributes
    ----------
    key
        The key of the timing in `Measurement.timings`.
    floor
        What plain Parquet does instead if it cannot do the same, or None.
    baseline
        Key of another measure; the report has each engine's ratio to its own baseline.
    targets
        The targets for the medians of the run.
    """

    key: str
    title: str
    floor: str | None = None
    baseline: str | None = None
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one engine in one round.

    Attributes
    ----------
    timings
        Seconds by measure, without measures that the engine does not support.
    answers
        Results that must be equal for all engines of the round.
    laps
        Seconds of the single steps of a measure, in order.
    metrics
        Other metrics, with units in their names.
    """

    timings: dict[str, float]
    answers: dict[str, Answer]
    laps: dict[str, list[float]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


class Scenario(ABC):
    """Work that all engines run in turns, several times.

    Attributes
    ----------
    rounds
        How often each engine is measured.
    warmup_rounds
        The number of earlier rounds whose results are discarded.
    fresh_process
        Whether each measurement runs in its own process.
    new_workers
        Whether long-lived workers restart before the scenario, so that code compiled for an earlier
        one does not favor an engine that generates the same code.
    needs_lineitem
        Whether it needs TPC-H's lineitem.
    by_name_only
        Whether it runs only if it is selected by name, because it takes long.
    """

    name: ClassVar[str]
    rounds: ClassVar[int]
    warmup_rounds: ClassVar[int] = 1
    fresh_process: ClassVar[bool] = False
    new_workers: ClassVar[bool] = False
    needs_lineitem: ClassVar[bool] = False
    by_name_only: ClassVar[bool] = False

    @abstractmethod
    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return the rows that this scenario adds to the report."""

    @abstractmethod
    def prepare(self, lab: Lab) -> None:
        """Create what `measure` reads. Called once per engine in its long-lived worker, untimed."""

    @abstractmethod
    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Do the work once and clean up; repetitions are numbered, including warm-up rounds."""
