"""All queries of TPC-DS and of TPC-H, and the loading of their tables."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import ClassVar

from pyspark.sql import DataFrame

from bench import tpc
from bench.lab import Answer, Lab
from bench.scenarios.scenario import Measure, Measurement, Scenario, Target
from bench.settings import Settings

#: How often a query is planned, and the seconds below which it is planned once more.
_LONG_PLANNINGS = 2
_LONG_PLANNING_S = 1.0
_TOTAL_TARGETS = (Target("parquet", 1.0), Target("delta", 1 / 1.5))
_PLANNING_TARGETS = (Target("parquet", 1.3, free_s=0.1),)


class TpcQueries(Scenario):
    """Runs each query of a suite once in a round, with separate times for planning.

    Before that, each query runs once for its answer, which warms the session up. A pause of the
    garbage collector takes several times as long as a short planning, so each query is planned
    several times, and the median is reported.
    """

    rounds: ClassVar[int] = 1
    warmup_rounds: ClassVar[int] = 0
    new_workers: ClassVar[bool] = True
    by_name_only: ClassVar[bool] = True
    suite: ClassVar[tpc.Suite]
    layout: ClassVar[tpc.Layout]

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return rows of all queries together, and two of each."""
        of = f"{self.suite.title}, {self.layout.title}"
        return (
            Measure("total", f"{of}: all queries", targets=_TOTAL_TARGETS),
            Measure("plan", f"{of}: planning of all queries"),
            *(
                measure
                for query in self.suite.queries(settings)
                for measure in (
                    Measure(query, f"{of}: {query}"),
                    Measure(
                        f"{query}-plan", f"{of}: planning of {query}", targets=_PLANNING_TARGETS
                    ),
                )
            ),
        )

    def prepare(self, lab: Lab) -> None:
        """Load the tables; compute the answer of each query."""
        tpc.create_views(lab, self.suite, tpc.prepare(lab, self.suite, self.layout))
        for name, query in self.suite.queries(lab.settings).items():
            self._answers[name] = tpc.answer(lab, query)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Recreate the views, which may be of another layout; plan and run each query."""
        tpc.create_views(lab, self.suite, tpc.prepare(lab, self.suite, self.layout))
        timings = {"total": 0.0, "plan": 0.0}
        for name, query in self.suite.queries(lab.settings).items():
            plannings = [_planned(lab, query) for _ in range(_LONG_PLANNINGS)]
            if min(seconds for seconds, _ in plannings) < _LONG_PLANNING_S:
                plannings.append(_planned(lab, query))
            planned_s = median(seconds for seconds, _ in plannings)
            df = plannings[-1][1]
            began_s = time.perf_counter()
            df.collect()
            seconds = planned_s + time.perf_counter() - began_s
            timings |= {name: seconds, f"{name}-plan": planned_s}
            timings["total"] += seconds
            timings["plan"] += planned_s
        return Measurement(timings=timings, answers=self._answers)


def _planned(lab: Lab, query: str) -> tuple[float, DataFrame]:
    """Return the seconds of planning a query, and its DataFrame."""
    began_s = time.perf_counter()
    df = lab.spark.sql(query)
    df._jdf.queryExecution().executedPlan()
    return time.perf_counter() - began_s, df


class TpcLoad(Scenario):
    """The tables of a suite, written from generated Parquet files."""

    rounds: ClassVar[int] = 3
    by_name_only: ClassVar[bool] = True
    suite: ClassVar[tpc.Suite]

    _LAYOUTS: ClassVar[tuple[tpc.Layout, ...]] = (tpc.Layout(), tpc.Layout(by_date=True))

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row for each layout."""
        return tuple(
            Measure(f"load{layout.name}", f"{self.suite.title}, bulk write, {how}")
            for layout in self._LAYOUTS
            for how in ["partitioned by date" if layout.by_date else "unpartitioned"]
        )

    def prepare(self, lab: Lab) -> None:
        """Generate the data."""
        tpc.tables(lab, self.suite)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Write all tables in each layout."""
        timings = {}
        answers = {}
        for layout in self._LAYOUTS:
            seconds = 0.0
            rows = 0
            for table in tpc.tables(lab, self.suite):
                path = lab.scratch(table)
                write = partial(tpc.write, lab, self.suite, layout, table, path)
                took_s, _ = lab.timed(write)
                seconds += took_s
                rows += lab.spark.read.format(lab.engine.source).load(path).count()
                lab.storage.delete(path)
            timings[f"load{layout.name}"] = seconds
            answers[f"rows{layout.name}"] = [[str(rows)]]
        return Measurement(timings=timings, answers=answers)


def _queries_of(of: tpc.Suite, stored: tpc.Layout) -> type[TpcQueries]:
    class Queries(TpcQueries):
        name: ClassVar[str] = of.name + stored.name
        suite: ClassVar[tpc.Suite] = of
        layout: ClassVar[tpc.Layout] = stored

    Queries.__doc__ = f"All queries of {of.title}, {stored.title}."
    return Queries


def _load_of(of: tpc.Suite) -> type[TpcLoad]:
    class Load(TpcLoad):
        name: ClassVar[str] = f"{of.name}-load"
        suite: ClassVar[tpc.Suite] = of

    Load.__doc__ = f"The tables of {of.title}, written from generated Parquet files."
    return Load


SCENARIOS: tuple[type[Scenario], ...] = tuple(
    scenario
    for suite in (tpc.TPCDS, tpc.TPCH)
    for scenario in (
        _load_of(suite),
        *(
            _queries_of(suite, tpc.Layout(by_date, deleted))
            for by_date in (False, True)
            for deleted in (False, True)
        ),
    )
)
