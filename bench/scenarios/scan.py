"""Scans of lineitem with no row, 1 % or 10 % of them at random, or one run of rows deleted."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import ClassVar

from pyspark.sql import DataFrame

from bench import lineitem
from bench.lab import Answer, Lab, collect
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings
from bench.turns import turns

# Nearly all rows match; no row group can be skipped.
_FILTER = "l_shipdate >= DATE '1992-02-01'"

_LIGHT = ("count(*)", "sum(l_partkey)", "sum(l_suppkey)")

# Every column, with aggregates that are exact and cheap, so that most time is spent reading.
_WIDE = (
    "count(*)",
    *(f"sum(l_{name})" for name in ("orderkey", "partkey", "suppkey", "linenumber")),
    *(f"max(l_{name})" for name in ("quantity", "extendedprice", "discount", "tax")),
    *(f"max(l_{name})" for name in ("shipdate", "commitdate", "receiptdate")),
    *(
        f"sum(octet_length(l_{name}))"
        for name in ("returnflag", "linestatus", "shipinstruct", "shipmode", "comment")
    ),
)

# The queries on lineitem, by name.
QUERIES = {"light": _LIGHT, "wide": _WIDE}

# One run of half a second is not enough if the speed of the machine varies by 10 % between runs.
_TIMES = {"light": 9, "wide": 3}

_VARIANTS = {
    "none": "no DV",
    "random": "1 % deleted at random",
    "tenth": "10 % deleted at random",
    "range": "1 % deleted in one run",
}


def _deleted_rows(settings: Settings, variant: str) -> str | None:
    return {
        "none": None,
        "random": lineitem.RANDOM_ROWS,
        "tenth": lineitem.RANDOM_TENTH,
        "range": lineitem.contiguous_rows(settings),
    }[variant]


def answer(rows: DataFrame, query: str) -> Answer:
    """Run a query of `QUERIES` over the rows that match the filter."""
    return collect(rows.where(_FILTER).selectExpr(*QUERIES[query]))


def run(lab: Lab, path: str, query: str) -> Answer:
    """Run a query of `QUERIES` on a lineitem."""
    return answer(lab.read(path, lineitem.SCHEMA), query)


class Scan(Scenario):
    """All variants in one turn, so that an engine's own ratios are measured at the same time.

    The expected answers are those of plain Parquet with `WHERE NOT (deleted)`.
    """

    name: ClassVar[str] = "scan"
    rounds: ClassVar[int] = 5
    # Plain Parquet runs its two plans for all variants; an engine with deletion vectors has a plan
    # for each. After two rounds, all of them are compiled.
    warmup_rounds: ClassVar[int] = 2
    needs_lineitem: ClassVar[bool] = True

    def __init__(self) -> None:
        self._truth: dict[str, Answer] = {}

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return a row per query and variant."""
        return tuple(
            Measure(
                f"{query}-{variant}",
                f"scan, {len(columns) - 1} columns, {title}",
                floor=None if variant == "none" else "scan with no row deleted",
                baseline=None if variant == "none" else f"{query}-none",
            )
            for query, columns in QUERIES.items()
            for variant, title in _VARIANTS.items()
        )

    def prepare(self, lab: Lab) -> None:
        """Load the table, clone it and delete from the clones; or compute the expected answers."""
        whole = lineitem.prepare(lab)
        for variant in _VARIANTS:
            deleted = _deleted_rows(lab.settings, variant)
            if not lab.engine.is_delta:
                rows = lab.read(whole, lineitem.SCHEMA).where(f"NOT ({deleted or False})")
                for query in QUERIES:
                    self._truth[f"{query}-{variant}"] = answer(rows, query)
            elif deleted is not None:
                lab.prepared(
                    lineitem.table_name(lab.settings, variant),
                    partial(_clone_and_delete, lab, whole, deleted),
                )

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Run every query on every variant, in an order that rotates from round to round.

        The speed of the machine varies, so each query runs several times and the median is
        reported. A first, untimed query warms the process up after the turns of others.
        """
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        whole = lab.prepared_path(lineitem.table_name(lab.settings))
        run(lab, whole, "light")
        for query, variant in turns(list(product(QUERIES, _VARIANTS)), repetition):
            key = f"{query}-{variant}"
            table = lineitem.table_name(lab.settings, variant if lab.engine.is_delta else "none")
            timings[key], found = lab.timed_often(
                partial(run, lab, lab.prepared_path(table), query), _TIMES[query]
            )
            answers[key] = self._truth.get(key, found)
        table_bytes = lab.storage.size(whole).size_bytes
        return Measurement(
            timings=timings, answers=answers, metrics={"table_bytes": float(table_bytes)}
        )


def _clone_and_delete(lab: Lab, source: str, deleted: str, target: str) -> None:
    lab.storage.clone(source, target)
    lab.spark.sql(f"DELETE FROM {lab.sql_name(target)} WHERE {deleted}")
