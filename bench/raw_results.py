"""The raw results of runs, and which of them are the newest.

A scenario's result is the newest beside an engine if no later run with the same `Parameters`
measured Deltaic and that engine to the end. So a run with fewer engines does not replace the
comparison with the others. All other raw results are superseded.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.engines import ENGINES
from bench.runner import Sample, ScenarioResult
from bench.scenarios import BY_NAME
from bench.scenarios.scenario import Measure, Measurement, Scenario, Target
from bench.scenarios.tpc_queries import TpcLoad, TpcQueries
from bench.settings import Settings

_STEM = re.compile(r"\d{8}T\d{6}")
_MILLION_ROWS_PER_SCALE = 10


@dataclass(frozen=True, slots=True)
class Run:
    """The JSON file of a run.

    Attributes
    ----------
    engines
        The summary and the versions of each engine.
    load_before
        The load average of the machine before the run, over 1, 5 and 15 minutes.
    """

    path: Path
    started: datetime
    command: str
    git_commit: str
    machine: Mapping[str, str | int]
    load_before: Sequence[float]
    settings: Settings
    engines: Mapping[str, Mapping[str, str | float]]
    subject: str
    results: tuple[ScenarioResult, ...]

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a file that `Report.write` wrote."""
        fields: dict[str, Any] = json.loads(path.read_text())
        settings = fields["settings"]
        return cls(
            path=path,
            started=datetime.fromisoformat(fields["started"]),
            command=fields["command"],
            git_commit=fields["git_commit"],
            machine=fields["machine"],
            load_before=fields["load_average"]["before"],
            settings=Settings(**{**settings, "queries": tuple(settings.get("queries", ()))}),
            engines=fields["engines"],
            subject=fields["subject"],
            results=tuple(_result(scenario) for scenario in fields["scenarios"]),
        )

    @property
    def is_complete(self) -> bool:
        """Whether it measured whole scenarios: not a smoke test, and not selected queries."""
        return not (self.settings.quick or self.settings.queries)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What two runs must have in common for one to supersede the other's result of a scenario.

    The heap, the machine and versions are not among them: the newest run has the current ones.

    Attributes
    ----------
    storage
        The scheme of the URI of the tables.
    million_rows
        The rows of lineitem with two digits, or None if the scenario does not read it.
    tpc_scale_factor
        The scale factor of TPC-DS and TPC-H, or None for other scenarios.
    """

    storage: str
    master: str
    shuffle_partitions: int
    confs: tuple[tuple[str, str], ...]
    million_rows: float | None
    tpc_scale_factor: float | None

    @classmethod
    def of(cls, scenario: type[Scenario], settings: Settings) -> Parameters:
        """Return the parameters of a scenario in a run."""
        million_rows = float(f"{_MILLION_ROWS_PER_SCALE * settings.scale:.2g}")
        is_tpc = issubclass(scenario, (TpcQueries, TpcLoad))
        return cls(
            urlsplit(settings.data).scheme,
            settings.master,
            settings.shuffle_partitions,
            tuple(sorted(settings.confs.items())),
            million_rows if scenario.needs_lineitem else None,
            settings.tpc_scale_factor if is_tpc else None,
        )

    @property
    def title(self) -> str:
        """The scale, and what differs from the default settings."""
        parts = []
        if self.million_rows is not None:
            parts.append(f"{self.million_rows:,.10g} million rows")
        if self.tpc_scale_factor is not None:
            parts.append(f"scale factor {self.tpc_scale_factor:g}")
        default = Settings()
        if self.storage != urlsplit(default.data).scheme:
            parts.append(f"on {self.storage}:")
        if self.master != default.master:
            parts.append(f"master {self.master}")
        if self.shuffle_partitions != default.shuffle_partitions:
            parts.append(f"{self.shuffle_partitions} shuffle partitions")
        parts += [f"{key}={value}" for key, value in self.confs]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class NewestResult:
    """A result of a scenario that is the newest beside at least one engine.

    Attributes
    ----------
    engines
        The subject, and the engines beside which it is the newest; in the order of `ENGINES`.
    is_first
        Whether no later run measured the scenario with these parameters, with any engines.
    """

    run: Run
    result: ScenarioResult
    parameters: Parameters
    engines: tuple[str, ...]
    is_first: bool

    @property
    def rounds(self) -> int:
        """How often the subject was measured."""
        return sum(sample.engine == self.run.subject for sample in self.result.samples)


def read_runs(folder: Path) -> list[Run]:
    """Read the raw results in a folder."""
    return [Run.read(path) for path in sorted(_of_runs(folder)) if path.suffix == ".json"]


def newest_results(runs: Iterable[Run]) -> list[NewestResult]:
    """Return the newest results, in the order of scenarios and from new to old.

    A result counts if its scenario has no error, measured Deltaic, and still exists.
    """
    chosen: list[NewestResult] = []
    measured: dict[tuple[str, Parameters], set[str]] = {}
    for run in sorted(runs, key=lambda run: run.started, reverse=True):
        for result in run.results if run.is_complete else ():
            engines = _measured_engines(result)
            if result.error or result.name not in BY_NAME or run.subject not in engines:
                continue
            parameters = Parameters.of(BY_NAME[result.name], run.settings)
            is_first = (result.name, parameters) not in measured
            later = measured.setdefault((result.name, parameters), set())
            shown = [e for e in ENGINES if e in engines and (e == run.subject or e not in later)]
            if is_first or len(shown) > 1:
                chosen.append(NewestResult(run, result, parameters, tuple(shown), is_first))
            later.update(engines)
    order = list(BY_NAME)
    return sorted(chosen, key=lambda newest: order.index(newest.result.name))


def move_superseded(folder: Path, newest: Iterable[NewestResult], to: Path) -> list[Path]:
    """Move the files of all runs without a newest result; return their new paths.

    Other files in the folder are not touched.
    """
    kept = {result.run.path.stem for result in newest}
    superseded = [path for path in sorted(_of_runs(folder)) if path.stem not in kept]
    to.mkdir(parents=True, exist_ok=True)
    for path in superseded:
        shutil.move(path, to / path.name)
    return [to / path.name for path in superseded]


def _of_runs(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.glob("*")
        if _STEM.fullmatch(path.stem) and path.suffix in (".json", ".txt")
    ]


def _measured_engines(result: ScenarioResult) -> set[str]:
    """Return the engines with figures: plain Parquet has none where it cannot do the work."""
    return {
        sample.engine
        for sample in result.samples
        if sample.measurement.timings or sample.measurement.metrics
    }


def _result(fields: Mapping[str, Any]) -> ScenarioResult:
    return ScenarioResult(
        fields["name"],
        tuple(_measure(summary["measure"]) for summary in fields["measures"]),
        [
            Sample(sample["engine"], sample["round"], Measurement(**sample["measurement"]))
            for sample in fields["samples"]
        ],
        fields["error"],
    )


def _measure(fields: Mapping[str, Any]) -> Measure:
    targets = tuple(Target(**target) for target in fields.get("targets", ()))
    return Measure(**{**fields, "targets": targets})
