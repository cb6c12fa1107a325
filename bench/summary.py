"""Medians and ratios of the samples of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.runner import Sample, ScenarioResult
from bench.scenarios.scenario import OWN_BASELINE, Measure, Target


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of some numbers."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one number."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class MeasureSummary:
    """One row of the report.

    Attributes
    ----------
    baseline_title
        The title of the measure's baseline, or None.
    seconds
        By engine, without engines that do not support the measure.
    over_subject
        By other engine, its seconds divided by the subject's: how many times faster the subject is.
    over_baseline
        By engine, its seconds divided by its own seconds of the measure's baseline.
    """

    measure: Measure
    baseline_title: str | None
    seconds: dict[str, Spread]
    over_subject: dict[str, Spread]
    over_baseline: dict[str, Spread]

    def target_results(self, subject: str) -> dict[Target, bool]:
        """Return the targets whose engines were measured, and whether each is met."""
        if subject not in self.seconds:
            return {}
        own_s = self.seconds[subject].median
        others_s = {engine: spread.median for engine, spread in self.seconds.items()}
        if subject in self.over_baseline:
            others_s[OWN_BASELINE] = own_s / self.over_baseline[subject].median
        return {
            target: own_s <= target.times * others_s[target.engine] + target.free_s
            for target in self.measure.targets
            if target.engine in others_s
        }


def summarize(result: ScenarioResult, subject: str) -> list[MeasureSummary]:
    """Summarize all measures of a scenario."""
    titles = {measure.key: measure.title for measure in result.measures}
    return [
        _summarize(result.samples, measure, titles.get(measure.baseline or ""), subject)
        for measure in result.measures
    ]


def metric_medians(result: ScenarioResult) -> dict[str, dict[str, float]]:
    """Return the median of every metric of a scenario, by metric and engine."""
    values: dict[str, dict[str, list[float]]] = {}
    for sample in result.samples:
        for metric, value in sample.measurement.metrics.items():
            values.setdefault(metric, {}).setdefault(sample.engine, []).append(value)
    return {
        metric: {engine: median(numbers) for engine, numbers in by_engine.items()}
        for metric, by_engine in values.items()
    }


def _summarize(
    samples: Sequence[Sample], measure: Measure, baseline_title: str | None, subject: str
) -> MeasureSummary:
    timings = _by_engine(samples, measure.key)
    own = timings.get(subject, {})
    baseline = {} if measure.baseline is None else _by_engine(samples, measure.baseline)
    return MeasureSummary(
        measure,
        baseline_title,
        {engine: Spread.of(list(rounds.values())) for engine, rounds in timings.items()},
        {
            engine: _ratio(rounds, own)
            for engine, rounds in timings.items()
            if rounds.keys() & own.keys() and engine != subject
        },
        {
            engine: _ratio(rounds, baseline[engine])
            for engine, rounds in timings.items()
            if rounds.keys() & baseline.get(engine, {}).keys()
        },
    )


def _by_engine(samples: Sequence[Sample], key: str) -> dict[str, dict[int, float]]:
    timings: dict[str, dict[int, float]] = {}
    for sample in samples:
        if key in sample.measurement.timings:
            timings.setdefault(sample.engine, {})[sample.round] = sample.measurement.timings[key]
    return timings


def _ratio(numerator: dict[int, float], denominator: dict[int, float]) -> Spread:
    """Return the ratio of the medians, with the extremes of the ratios of single rounds.

    The two numbers of a round are measured shortly after one another, so that a temporary load on
    the machine hardly affects their ratio. A round in which one of them failed is used only for the
    other's median; at least one round must have both.
    """
    paired = [
        numerator[number] / denominator[number] for number in numerator.keys() & denominator.keys()
    ]
    middle = median(numerator.values()) / median(denominator.values())
    return Spread(middle, min(paired), max(paired))
