"""The printed table and the JSON file of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from bench.engines import FLOOR
from bench.environment import git_commit, load_average, machine
from bench.markdown import amount
from bench.runner import ScenarioResult
from bench.scenarios.scenario import Target
from bench.settings import Settings
from bench.summary import MeasureSummary, Spread, metric_medians, summarize


@dataclass(slots=True)
class Report:
    """All results of a run. It is rewritten after every scenario, so that no result is lost."""

    command: str
    settings: Settings
    engines: dict[str, str]
    subject: str
    started: datetime
    load_before: list[float] = field(default_factory=load_average)
    facts: dict[str, dict[str, str | float]] = field(default_factory=dict)
    results: list[ScenarioResult] = field(default_factory=list)

    @property
    def failures(self) -> list[ScenarioResult]:
        """The scenarios that ended early."""
        return [result for result in self.results if result.error is not None]

    def write(self, folder: Path) -> Path:
        """Write the JSON file, and the table as a text file; return the path of the JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{self.started:%Y%m%dT%H%M%S}"
        document = json.dumps(self._document(), indent=1)
        path = folder / f"{stem}.json"
        path.write_text(document + "\n")
        (folder / f"{stem}.txt").write_text(self.table() + "\n")
        return path

    def table(self) -> str:
        """Return the table: medians in seconds (min–max), with ratios to the subject below."""
        summaries = [
            summary for result in self.results for summary in summarize(result, self.subject)
        ]
        lines = _aligned([["", *self.engines], *self._rows(summaries)])
        own = self._own_ratios(summaries)
        if own:
            lines += ["", "Each engine beside itself:"]
            lines += _aligned([["", *self.engines], *own])
        lines += self._targets(summaries)
        metrics = self._metrics()
        if metrics:
            lines += ["", "Beside the clock, medians:"]
            lines += _aligned([["", *self.engines], *metrics])
        lines += [
            "",
            "Medians (and extremes) of single rounds; an engine's ratio ÷ "
            f"{self.subject} tells how many times faster {self.subject} is.",
        ]
        lines += [f"{name}: {summary}" for name, summary in self.engines.items()]
        lines += [
            f"[{number}] parquet has nothing like it: {floor}, as a floor"
            for number, floor in enumerate(_floors(summaries), start=1)
        ]
        lines += [f"FAILED {result.name}: {result.error}" for result in self.failures]
        return "\n".join(lines)

    def _rows(self, summaries: Sequence[MeasureSummary]) -> list[list[str]]:
        rows = []
        floors = _floors(summaries)
        for summary in summaries:
            seconds = [_seconds(summary, engine, floors) for engine in self.engines]
            rows.append([summary.measure.title, *seconds])
            ratios = [_ratio(summary.over_subject.get(engine)) for engine in self.engines]
            if any(ratios):
                rows.append([f"    ÷ {self.subject}", *ratios])
        return rows

    def _own_ratios(self, summaries: Sequence[MeasureSummary]) -> list[list[str]]:
        return [
            [
                f"{summary.measure.title} ÷ {summary.baseline_title}",
                *(_ratio(summary.over_baseline.get(engine)) for engine in self.engines),
            ]
            for summary in summaries
            if summary.over_baseline
        ]

    def _targets(self, summaries: Sequence[MeasureSummary]) -> list[str]:
        results = [
            (summary.measure.title, target, is_met)
            for summary in summaries
            for target, is_met in summary.target_results(self.subject).items()
        ]
        if not results:
            return []
        missed = [_missed(title, target) for title, target, is_met in results if not is_met]
        return ["", f"Targets met: {len(results) - len(missed)} of {len(results)}", *missed]

    def _metrics(self) -> list[list[str]]:
        return [
            [
                f"{result.name}: {metric.replace('_', ' ')}",
                *(_number(by_engine.get(engine)) for engine in self.engines),
            ]
            for result in self.results
            for metric, by_engine in metric_medians(result).items()
        ]

    def _document(self) -> dict[str, object]:
        return {
            "command": self.command,
            "started": self.started.isoformat(timespec="seconds"),
            "written": datetime.now(self.started.tzinfo).isoformat(timespec="seconds"),
            "git_commit": git_commit(),
            "machine": machine(),
            "load_average": {"before": self.load_before, "after": load_average()},
            "settings": asdict(self.settings),
            "spark_confs": self.settings.spark_confs(),
            "engines": {
                name: {"summary": summary, **self.facts.get(name, {})}
                for name, summary in self.engines.items()
            },
            "subject": self.subject,
            "scenarios": [self._scenario(result) for result in self.results],
        }

    def _scenario(self, result: ScenarioResult) -> dict[str, object]:
        return {
            "name": result.name,
            "error": result.error,
            "measures": [asdict(summary) for summary in summarize(result, self.subject)],
            "samples": [asdict(sample) for sample in result.samples],
        }


def _floors(summaries: Sequence[MeasureSummary]) -> list[str]:
    """Return what plain Parquet does in place of a measure, in the order of the footnotes."""
    floors = (summary.measure.floor for summary in summaries)
    return list(dict.fromkeys(floor for floor in floors if floor is not None))


def _seconds(summary: MeasureSummary, engine: str, floors: Sequence[str]) -> str:
    spread = summary.seconds.get(engine)
    if spread is None:
        return "n/a"
    floor = summary.measure.floor
    note = f"[{floors.index(floor) + 1}] " if engine == FLOOR and floor is not None else ""
    return f"{note}{spread.median:.3f} s ({spread.min:.3f}–{spread.max:.3f})"


def _missed(title: str, target: Target) -> str:
    free = f" and {target.free_s:g} s" if target.free_s else ""
    return f"MISSED {title}: at most {target.times:.2g} times {target.engine}'s{free}"


def _number(value: float | None) -> str:
    return "" if value is None else amount(value, is_bytes=False)


def _ratio(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return f"{spread.median:.2f}x ({spread.min:.2f}–{spread.max:.2f})"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
