"""What every scenario has. It runs inside a worker; the runner only reads what it declares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from bench.lab import Answer, Lab
from bench.settings import Settings


@dataclass(frozen=True, slots=True)
class Target:
    """What Deltaic's seconds may be at most, beside another engine's in the same run.

    Attributes
    ----------
    engine
        The other engine; a run without it says nothing about the target.
    times
        How many times the other's seconds.
    free_s
        Seconds that come on top: of what is that short, a ratio says little.
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
        Names the timing in `Measurement.timings`.
    floor
        What plain Parquet does instead where it cannot do the same, or None.
    baseline
        Key of another measure; the report tells each engine's ratio to its own baseline.
    targets
        What the medians of the run are held against.
    """

    key: str
    title: str
    floor: str | None = None
    baseline: str | None = None
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one engine did in one round.

    Attributes
    ----------
    timings
        Seconds by measure; a measure that the engine cannot do is left out.
    answers
        What must be equal for all engines of the round.
    laps
        Seconds of the single steps of a measure, in order.
    metrics
        Whatever else is worth keeping, units in the names.
    """

    timings: dict[str, float]
    answers: dict[str, Answer]
    laps: dict[str, list[float]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


class Scenario(ABC):
    """A piece of work that is given to all engines, in turns, several times.

    Attributes
    ----------
    rounds
        How often each engine is measured.
    warmup_rounds
        Rounds before those, thrown away.
    fresh_process
        Whether each measurement gets a process of its own.
    new_workers
        Whether long-lived workers restart before the scenario, so that code compiled for an
        earlier one does not favour the engine that generates the same code again.
    needs_lineitem
        Whether TPC-H's lineitem must have been generated.
    by_name_only
        Whether it takes so long that it runs only when it is asked for by name.
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
        """Make what `measure` reads. Called once per engine, in its long-lived worker; untimed."""

    @abstractmethod
    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Do the work once and clean up; repetitions count up over warm-up rounds too."""
