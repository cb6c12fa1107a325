"""The page of the newest results, `RESULTS.md`, generated from the raw results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.engines import ENGINES, FLOOR, SUBJECT, VARIANT
from bench.markdown import amount, details, duration, ratio, table
from bench.raw_results import NewestResult, Run, move_superseded, newest_results, read_runs
from bench.scenarios import BY_NAME
from bench.scenarios.scenario import OWN_BASELINE, Target
from bench.scenarios.tpc_queries import TpcQueries
from bench.summary import MeasureSummary, metric_medians, summarize

#: The scenarios of each section.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "First queries, and tables with many files or commits": (
        "cold-query",
        "new-table",
        "open-files",
        "long-log",
    ),
    "Commits and checkpoints": (
        "appends",
        "many-commits",
        "auto-compaction",
        "one-row-deletes",
        "one-row-updates",
        "large-commit",
        "checkpoint",
    ),
    "Maintenance": ("optimize", "drop-vectors", "restore", "vacuum-full", "vacuum-lite"),
    "Existing files": ("convert", "shallow-clone", "deep-clone"),
    "Writes and scans": ("write", "scan"),
    "DELETE, UPDATE and MERGE": ("delete", "update", "merge", "refresh", "scan-after-merges"),
    "Concurrent writers": ("concurrent-writers",),
    "Streams": ("stream-small-batches", "stream-catch-up", "stream-copy", "stream-long-run"),
    "TPC-DS": tuple(name for name in BY_NAME if name.startswith("tpcds")),
    "TPC-H": tuple(name for name in BY_NAME if name.startswith("tpch")),
}

_LABELS = {
    SUBJECT: "Deltaic",
    VARIANT: "Deltaic, classes not loaded",
    "delta": "delta-spark",
    "delta-tuned": "delta-spark, tuned",
    FLOOR: "plain Parquet",
    OWN_BASELINE: "its baseline",
}
_HEADER = tuple(_LABELS[name] for name in ENGINES)
_PLANNING = "plan"
_TOTALS = ("total", _PLANNING)
_PLAN_SUFFIX = "-plan"
_GIB = 1 << 30

#: A table of more lines, the two of its header included, is collapsed.
_MAX_OPEN_LINES = 12

_INTRO = """\
# Results of the benchmark

`make bench-results` generates this page from the [raw results](results), and so does each run of
the bench: do not edit it. [README.md](README.md) describes the scenarios and how to run them.

- **How it is measured.** All engines of a run do the same work in turns, one at a time, each in a
  process of its own, with the same Spark settings. Their results must be equal. A time is the
  median of the rounds; the raw results have the minimum and the maximum, too.
- **Ratios.** In brackets is the time of the engine divided by the time of Deltaic in the same run:
  with `(4.0x)`, Deltaic takes a quarter of the time, and with `(0.50x)` twice the time. Compare the
  ratios of different runs, not their times, because the speed of the machine changes.
- **Which run.** Each figure is from the newest run that measured the scenario to the end with the
  same amount of data and the same settings. If it did not measure an engine, the newest run that
  did is in a second table.
- **DV** is a deletion vector."""

_OWN_RATIOS = "The time of an engine, divided by another time of the same engine"
_NOISE = " (plain Parquet runs the same scan for both, so its ratios show the noise of the run)"


def publish(results: Path, page: Path, superseded: Path) -> list[Path]:
    """Rewrite the page, and move the raw results that it does not cite to another folder.

    Returns
    -------
    list of Path
        The new paths of the moved files.
    """
    newest = newest_results(read_runs(results))
    page.write_text(render(newest, results.relative_to(page.parent).as_posix()))
    return move_superseded(results, newest, superseded)


def render(newest: Sequence[NewestResult], folder: str) -> str:
    """Return the page; `folder` is the relative path of the raw results."""
    runs = {result.run.path.stem: result.run for result in newest}
    by_time = [runs[stem] for stem in sorted(runs, reverse=True)]
    lines = [_INTRO, *_environment(by_time)]
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        lines += _group([r for r in newest if r.result.name in names], folder)
        missing = [name for name in names if name not in {r.result.name for r in newest}]
        if missing:
            lines += ["", f"No result yet: {', '.join(f'`{name}`' for name in missing)}."]
    lines += _queries([r for r in newest if _has_queries(r)], folder)
    lines += ["", "## Runs", "", *_list_of_runs(by_time, folder)]
    return "\n".join(lines) + "\n"


def _environment(runs: Sequence[Run]) -> list[str]:
    """Return the values that the runs have in common, or all of them if they differ."""
    engines = [(name, facts) for run in runs for name, facts in run.engines.items()]
    spark = _distinct(str(facts["spark_version"]) for _, facts in engines)
    delta = _distinct(
        str(facts["engine_version"]) for name, facts in engines if ENGINES[name].tables == "delta"
    )
    settings = _distinct(
        f"`{run.settings.master}` with {run.settings.shuffle_partitions} shuffle partitions"
        for run in runs
    )
    summaries = {name: str(facts["summary"]) for name, facts in engines}
    return [
        f"- **Machine.** {'; '.join(_distinct(_machine(run) for run in runs))}.",
        f"- **Versions.** Spark {', '.join(spark)}; delta-spark {', '.join(delta) or 'unknown'}. "
        "The [list of runs](#runs) has the commit of Deltaic.",
        f"- **Spark.** {'; '.join(settings)}. The list of runs has the heap.",
        *(
            f"- *{_LABELS[name]}* is {summaries[name]}."
            for name in ENGINES
            if name in summaries and name != SUBJECT
        ),
    ]


def _group(results: Sequence[NewestResult], folder: str) -> list[str]:
    """Return the tables of some scenarios."""
    lines: list[str] = []
    newest = _times([result for result in results if result.is_first], folder)
    if newest:
        lines += ["", *newest]
    older = _times([result for result in results if not result.is_first], folder)
    if older:
        lines += ["", "Older runs, for engines that the newest run did not measure:", "", *older]
    own = _own_ratios(results, folder)
    if own:
        noise = _NOISE if _LABELS[FLOOR] in own[0] else ""
        lines += ["", f"{_OWN_RATIOS}{noise}:", "", *own]
    metrics = _metrics(results, folder)
    if metrics:
        title = "Medians of other figures"
        is_open = len(metrics) <= _MAX_OPEN_LINES
        lines += ["", *([f"{title}:", "", *metrics] if is_open else details(title, metrics))]
    return lines


def _times(results: Sequence[NewestResult], folder: str) -> list[str]:
    """Return the table of times, and what plain Parquet does instead of some measures."""
    rows: list[list[str]] = []
    floors: dict[str, int] = {}
    for newest in results:
        summaries = _summaries(newest)
        for summary in summaries:
            measure = summary.measure
            if _has_queries(newest) and measure.key not in _TOTALS:
                continue
            times = {engine: _time(summary, engine) for engine in summary.seconds}
            if measure.floor is not None and FLOOR in times:
                number = floors.setdefault(measure.floor, len(floors) + 1)
                times[FLOOR] += f" <sup>{number}</sup>"
            targets = _targets(summary, newest)
            if _has_queries(newest) and measure.key == _PLANNING:
                targets = _targets_of_queries(summaries, newest)
            rows += _row(measure.title, times, newest, folder, targets)
    lines = table(["scenario", *_HEADER, "targets", "run"], rows)
    if floors:
        listed = "; ".join(f"<sup>{number}</sup> {floor}" for floor, number in floors.items())
        lines += ["", f"Plain Parquet cannot do the same. What it does instead: {listed}."]
    return lines


def _own_ratios(results: Sequence[NewestResult], folder: str) -> list[str]:
    """Return the table of each engine's ratios to its own baselines."""
    rows: list[list[str]] = []
    for newest in results:
        for summary in _summaries(newest):
            own = {
                engine: ratio(spread.median)
                for engine, spread in summary.over_baseline.items()
                if engine in summary.seconds
            }
            title = f"{summary.measure.title} ÷ {summary.baseline_title}"
            rows += _row(title, own, newest, folder)
    return table(["ratio", *_HEADER, "run"], rows)


def _metrics(results: Sequence[NewestResult], folder: str) -> list[str]:
    """Return the table of what is measured beside times."""
    rows: list[list[str]] = []
    for newest in results:
        for metric, by_engine in metric_medians(newest.result).items():
            amounts = {
                engine: amount(value, is_bytes="bytes" in metric.split("_"))
                for engine, value in by_engine.items()
                if engine in newest.engines
            }
            title = f"{newest.result.name}: {metric.replace('_', ' ')}"
            rows += _row(title, amounts, newest, folder)
    return table(["figure", *_HEADER, "run"], rows)


def _row(
    title: str, by_engine: Mapping[str, str], newest: NewestResult, folder: str, *more: str
) -> list[list[str]]:
    """Return a row, or none if it has no engine for which its run is the newest."""
    if not by_engine or (not newest.is_first and set(by_engine) == {newest.run.subject}):
        return []
    parameters = newest.parameters.title
    full_title = f"{title} ({parameters})" if parameters else title
    cells = [by_engine.get(engine, "") for engine in ENGINES]
    return [[full_title, *cells, *more, _link(newest, folder)]]


def _queries(results: Sequence[NewestResult], folder: str) -> list[str]:
    """Return a section that has the table of all queries of each result."""
    if not results:
        return []
    lines = [
        "",
        "## Each query of TPC-DS and TPC-H",
        "",
        "The time until a query has returned its rows includes its planning.",
    ]
    for newest in results:
        scenario = BY_NAME[newest.result.name]
        assert issubclass(scenario, TpcQueries)
        title = f"{scenario.suite.title}, {scenario.layout.title}"
        summary = f"{title} ({newest.parameters.title}), run of {_started(newest.run)}"
        lines += ["", *details(summary, _table_of_queries(newest))]
    return lines


def _table_of_queries(newest: NewestResult) -> list[str]:
    by_key = {summary.measure.key: summary for summary in _summaries(newest)}
    rows = []
    for key, summary in by_key.items():
        if key + _PLAN_SUFFIX in by_key:
            parts = (summary, by_key[key + _PLAN_SUFFIX])
            times = [_time(part, engine) for part in parts for engine in ENGINES]
            missed = [
                _target(target)
                for part in parts
                for target, is_met in part.target_results(newest.run.subject).items()
                if not is_met
            ]
            rows.append([key, *times, "; ".join(missed)])
    planning = [f"planning: {label}" for label in _HEADER]
    return table(["query", *_HEADER, *planning, "missed target"], rows)


def _list_of_runs(runs: Sequence[Run], folder: str) -> list[str]:
    rows = [
        [
            _started(run),
            f"`{run.command}`",
            _commit(run.git_commit),
            str(run.engines[run.subject]["engine_version"]),
            run.settings.driver_memory,
            f"{run.load_before[0]:.1f}",
            " ".join(f"[{end}]({folder}/{run.path.stem}.{end})" for end in ("json", "txt")),
        ]
        for run in runs
    ]
    header = [
        "started",
        "command",
        "commit",
        "Deltaic",
        "heap",
        "load average before",
        "raw results",
    ]
    return table(header, rows)


def _has_queries(newest: NewestResult) -> bool:
    return issubclass(BY_NAME[newest.result.name], TpcQueries)


def _summaries(newest: NewestResult) -> list[MeasureSummary]:
    """Return the summaries without the seconds of engines that are not to be shown."""
    return [
        replace(
            summary,
            seconds={e: spread for e, spread in summary.seconds.items() if e in newest.engines},
        )
        for summary in summarize(newest.result, newest.run.subject)
    ]


def _time(summary: MeasureSummary, engine: str) -> str:
    """Return the median of an engine, and its ratio to the subject's; empty without a time."""
    if engine not in summary.seconds:
        return ""
    median = duration(summary.seconds[engine].median)
    over_subject = summary.over_subject.get(engine)
    return median if over_subject is None else f"{median} ({ratio(over_subject.median)})"


def _targets(summary: MeasureSummary, newest: NewestResult) -> str:
    """Return each target of a measure: whether it is met, or that its engine was not measured."""
    results = summary.target_results(newest.run.subject)
    words = {True: "met", False: "**missed**", None: "not measured"}
    return "; ".join(
        f"{_target(target)}: {words[results.get(target)]}" for target in summary.measure.targets
    )


def _targets_of_queries(summaries: Iterable[MeasureSummary], newest: NewestResult) -> str:
    """Return how many queries meet each target."""
    results: dict[Target, list[bool]] = {}
    for summary in summaries:
        if summary.measure.key not in _TOTALS:
            for target, is_met in summary.target_results(newest.run.subject).items():
                results.setdefault(target, []).append(is_met)
    return "; ".join(
        f"{_target(target)}: met by {sum(met)} of {len(met)} queries"
        for target, met in results.items()
    )


def _target(target: Target) -> str:
    free = f" + {duration(target.free_s)}" if target.free_s else ""
    return f"≤ {target.times:.2g} × {_LABELS[target.engine]}{free}"


def _link(newest: NewestResult, folder: str) -> str:
    rounds = f"{newest.rounds} round{'' if newest.rounds == 1 else 's'}"
    return f"[{_started(newest.run)}]({folder}/{newest.run.path.name}), {rounds}"


def _started(run: Run) -> str:
    return f"{run.started:%Y-%m-%d %H:%M}"


def _commit(described: str) -> str:
    commit, _, dirty = described.partition("-")
    return f"{commit[:9]} with uncommitted changes" if dirty else commit[:9]


def _machine(run: Run) -> str:
    machine = run.machine
    memory_gib = int(machine["memory_bytes"]) / _GIB
    return (
        f"{machine['cores']} cores ({machine['cpu_model']}), {memory_gib:.0f} GiB of memory, "
        f"{machine['java']}, Python {machine['python']}"
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted(set(values))
