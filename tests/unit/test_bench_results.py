"""Which raw results of the benchmark are the newest, and the page that is generated from them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from bench.engines import ENGINES
from bench.markdown import amount, duration, ratio, table
from bench.raw_results import newest_results, read_runs
from bench.report import Report
from bench.results_page import GROUPS, publish, render
from bench.runner import Sample, ScenarioResult
from bench.scenarios import BY_NAME
from bench.scenarios.scenario import Measure, Measurement, Target
from bench.settings import REPOSITORY, Settings

FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
SECONDS = {"deltaic": 1.0, "delta": 4.0, "delta-tuned": 3.0, "parquet": 0.5}
DEFAULTS = Settings()


def result(
    name: str, engines: str, *measures: Measure, error: str | None = None, rounds: int = 1
) -> ScenarioResult:
    """Return a result in which each engine took its number of seconds for each measure."""
    measures = measures or (Measure("time", f"work of {name}"),)
    samples = [
        Sample(
            engine,
            number,
            Measurement({measure.key: SECONDS[engine] for measure in measures}, {}),
        )
        for engine in engines.split()
        for number in range(rounds)
    ]
    return ScenarioResult(name, measures, samples, error)


def write_run(
    folder: Path, day: int, *results: ScenarioResult, settings: Settings = DEFAULTS
) -> None:
    names = {sample.engine for one in results for sample in one.samples}
    facts: dict[str, dict[str, str | float]] = {
        name: {"engine_version": f"{name}-1", "spark_version": "4.2.0"} for name in names
    }
    Report(
        command=f"python -m bench --day {day}",
        settings=settings,
        engines={name: ENGINES[name].summary for name in ENGINES if name in names},
        subject="deltaic",
        started=FIRST_DAY + timedelta(days=day),
        facts=facts,
        results=list(results),
    ).write(folder)


def chosen(folder: Path) -> list[tuple[str, int, str]]:
    """Return the scenario, the day and the engines of each newest result."""
    return [
        (newest.result.name, (newest.run.started - FIRST_DAY).days, " ".join(newest.engines))
        for newest in newest_results(read_runs(folder))
    ]


def page(folder: Path) -> str:
    return render(newest_results(read_runs(folder)), "results")


def rows(text: str, title: str) -> list[list[str]]:
    """Return the cells of the rows whose first cell begins with a title."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {title}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_later_run_supersedes_only_the_scenarios_that_it_measured(tmp_path):
    write_run(tmp_path, 0, result("appends", "deltaic delta"), result("long-log", "deltaic delta"))
    write_run(tmp_path, 1, result("appends", "deltaic delta"))

    assert chosen(tmp_path) == [("long-log", 0, "deltaic delta"), ("appends", 1, "deltaic delta")]


def test_a_run_with_fewer_engines_does_not_supersede_the_comparison_with_others(tmp_path):
    write_run(tmp_path, 0, result("appends", "deltaic delta delta-tuned"))
    write_run(tmp_path, 1, result("appends", "deltaic delta parquet"))
    write_run(tmp_path, 2, result("appends", "deltaic parquet"))

    assert chosen(tmp_path) == [
        ("appends", 2, "deltaic parquet"),
        ("appends", 1, "deltaic delta"),
        ("appends", 0, "deltaic delta-tuned"),
    ]


def test_a_run_with_more_engines_supersedes_all_earlier_ones(tmp_path):
    write_run(tmp_path, 0, result("appends", "deltaic"))
    write_run(tmp_path, 1, result("appends", "deltaic parquet"))
    write_run(tmp_path, 2, result("appends", "deltaic delta parquet"))

    assert chosen(tmp_path) == [("appends", 2, "deltaic delta parquet")]


def test_an_engine_without_figures_is_not_measured(tmp_path):
    no_floor = result("checkpoint", "deltaic delta")
    no_floor.samples.append(Sample("parquet", 0, Measurement({}, {})))
    write_run(tmp_path, 0, no_floor)

    assert chosen(tmp_path) == [("checkpoint", 0, "deltaic delta")]


def test_an_engine_that_has_only_metrics_is_measured(tmp_path):
    race = result("concurrent-writers", "deltaic")
    race.samples.append(Sample("delta", 0, Measurement({}, {}, metrics={"given_up": 31})))
    write_run(tmp_path, 0, race)

    assert chosen(tmp_path) == [("concurrent-writers", 0, "deltaic delta")]
    assert rows(page(tmp_path), "concurrent-writers: given up")[0][1:2] == ["31"]


@pytest.mark.parametrize(
    ("later", "settings"),
    [
        (result("tpch", "deltaic", error="died"), DEFAULTS),
        (result("tpch", "deltaic"), Settings(quick=True)),
        (result("tpch", "deltaic"), Settings(queries=("q1",))),
        (result("tpch", "delta"), DEFAULTS),
    ],
    ids=["failed", "quick", "selected queries", "without Deltaic"],
)
def test_a_result_that_does_not_count_supersedes_nothing(tmp_path, later, settings):
    write_run(tmp_path, 0, result("tpch", "deltaic"))
    write_run(tmp_path, 1, later, settings=settings)

    assert chosen(tmp_path) == [("tpch", 0, "deltaic")]


def test_a_scenario_that_no_longer_exists_has_no_newest_result(tmp_path):
    write_run(tmp_path, 0, result("removed-scenario", "deltaic"))

    assert chosen(tmp_path) == []


@pytest.mark.parametrize(
    ("scenario", "later", "is_superseded"),
    [
        ("scan", Settings(scale=0.6), False),
        ("scan", Settings(scale=1.001), True),
        ("appends", Settings(scale=0.6), True),
        ("tpcds", Settings(tpc_scale_factor=10), False),
        ("scan", Settings(tpc_scale_factor=10), True),
        ("scan", Settings(shuffle_partitions=200), False),
        ("scan", Settings(master="spark://host:7077"), False),
        ("scan", Settings(data="hdfs:///bench"), False),
        ("scan", Settings(confs={"spark.sql.adaptive.enabled": "false"}), False),
        ("scan", Settings(driver_memory="6g"), True),
        ("scan", Settings(data="file:///elsewhere"), True),
    ],
)
def test_a_run_with_other_parameters_does_not_supersede(tmp_path, scenario, later, is_superseded):
    write_run(tmp_path, 0, result(scenario, "deltaic"))
    write_run(tmp_path, 1, result(scenario, "deltaic"), settings=later)

    days = [day for _, day, _ in chosen(tmp_path)]

    assert days == ([1] if is_superseded else [1, 0])


def test_the_page_has_times_ratios_parameters_and_the_run(tmp_path):
    write_run(tmp_path, 0, result("scan", "deltaic delta parquet", rounds=3))

    assert rows(page(tmp_path), "work of scan") == [
        [
            "work of scan (10 million rows)",
            "1.0 s",
            "4.0 s (4.0x)",
            "500 ms (0.50x)",
            "[2026-01-01 12:00](results/20260101T120000.json), 3 rounds",
        ]
    ]


def test_an_older_run_has_only_the_engines_that_newer_ones_did_not_measure(tmp_path):
    write_run(tmp_path, 0, result("appends", "deltaic delta delta-tuned parquet"))
    write_run(tmp_path, 1, result("appends", "deltaic delta"))

    newest, older = rows(page(tmp_path), "work of appends")

    assert newest[1:3] == ["1.0 s", "4.0 s (4.0x)"]
    assert older[1:4] == ["1.0 s", "3.0 s (3.0x)", "500 ms (0.50x)"]


def test_an_older_run_has_no_row_without_another_engine(tmp_path):
    only_deltaic = result("open-files", "deltaic delta")
    only_deltaic = replace(
        only_deltaic, measures=(*only_deltaic.measures, Measure("large", "a million files"))
    )
    only_deltaic.samples[0].measurement.timings["large"] = 2.0
    write_run(tmp_path, 0, only_deltaic)
    write_run(tmp_path, 1, result("open-files", "deltaic"))

    assert rows(page(tmp_path), "a million files") == []
    assert len(rows(page(tmp_path), "work of open-files")) == 2


def test_the_page_says_what_plain_parquet_does_instead(tmp_path):
    merge = Measure("merge", "a MERGE", floor="count of the matching rows")
    write_run(tmp_path, 0, result("merge", "deltaic parquet", merge))

    text = page(tmp_path)

    assert rows(text, "a MERGE")[0][2] == "500 ms (0.50x) <sup>1</sup>"
    assert "does instead: <sup>1</sup> count of the matching rows." in text


def test_the_page_has_the_ratio_of_an_engine_to_its_own_baseline(tmp_path):
    none, deleted = Measure("none", "no DV"), Measure("dv", "1 % deleted", baseline="none")
    write_run(tmp_path, 0, result("scan", "deltaic delta", none, deleted))

    assert rows(page(tmp_path), "1 % deleted ÷ no DV")[0][1:3] == ["1.00x", "1.00x"]


def tpc_measures(*queries: str) -> tuple[Measure, ...]:
    targets = (Target("parquet", 1.0), Target("delta", 0.5), Target("delta-tuned", 0.5))
    planning = (Target("parquet", 1.3, free_s=0.1),)
    return (
        Measure("total", "all queries", targets=targets),
        Measure("plan", "planning of all queries"),
        *(
            measure
            for query in queries
            for measure in (
                Measure(query, query),
                Measure(f"{query}-plan", f"planning of {query}", targets=planning),
            )
        ),
    )


def test_a_suite_has_rows_of_its_totals_with_targets_and_a_collapsed_table_of_queries(tmp_path):
    suite = result("tpch", "deltaic delta parquet", *tpc_measures("q1", "q2"))
    planning = {"deltaic": 0.7, "delta": 0.9, "parquet": 0.5}
    for sample in suite.samples:
        sample.measurement.timings["q1-plan"] = planning[sample.engine]
    write_run(tmp_path, 0, suite)

    text = page(tmp_path)

    assert rows(text, "all queries")[0][4] == (
        "≤ 1 × plain Parquet: **missed**; ≤ 0.5 × delta-spark: met; "
        "≤ 0.5 × delta-spark, tuned: not measured"
    )
    assert rows(text, "planning of all queries")[0][4] == (
        "≤ 1.3 × plain Parquet + 100 ms: met by 1 of 2 queries"
    )
    assert "<summary>TPC-H, unpartitioned, no DV (scale factor 1), run of 2026-01-01" in text
    assert rows(text, "q1")[0][4:] == ["700 ms", "900 ms (1.29x)", "500 ms (0.71x)", ""]
    assert rows(text, "q2")[0][1:4] == ["1.0 s", "4.0 s (4.0x)", "500 ms (0.50x)"]
    assert rows(text, "q2")[0][7] == "≤ 1.3 × plain Parquet + 100 ms"


def test_the_page_lists_runs_versions_and_scenarios_that_are_not_measured(tmp_path):
    write_run(tmp_path, 0, result("write", "deltaic delta"))

    text = page(tmp_path)

    assert "Spark 4.2.0; delta-spark delta-1." in text
    assert rows(text, "2026-01-01 12:00")[0][1] == "`python -m bench --day 0`"
    assert "No result yet: `scan`." in text


def test_publishing_keeps_exactly_the_raw_results_that_the_page_cites(tmp_path):
    results, old = tmp_path / "results", tmp_path / "old"
    write_run(results, 0, result("appends", "deltaic delta"), result("scan", "deltaic"))
    write_run(results, 1, result("appends", "deltaic parquet"))
    write_run(results, 2, result("scan", "deltaic"), result("merge", "deltaic", error="died"))
    write_run(results, 3, result("appends", "deltaic parquet"))
    note = results / "20260101T120000-profile.txt"
    note.write_text("a note")

    moved = publish(results, tmp_path / "RESULTS.md", old)

    text = (tmp_path / "RESULTS.md").read_text()
    cited = {tmp_path / link for link in re.findall(r"\((results/[^)]+)\)", text)}
    assert cited == set(results.iterdir()) - {note}
    assert {path.stem for path in cited} == {f"2026010{day}T120000" for day in (1, 3, 4)}
    assert moved == [old / f"20260102T120000.{end}" for end in ("json", "txt")]
    assert all(path.exists() for path in [*moved, note])


def test_publishing_again_changes_nothing(tmp_path):
    results, out, old = tmp_path / "results", tmp_path / "RESULTS.md", tmp_path / "old"
    write_run(results, 0, result("appends", "deltaic"))
    write_run(results, 1, result("appends", "deltaic"))
    publish(results, out, old)
    text = out.read_text()

    assert publish(results, out, old) == []
    assert out.read_text() == text


def test_the_page_of_the_repository_is_up_to_date():
    folder = REPOSITORY / "bench"
    newest = newest_results(read_runs(folder / "results"))

    assert (folder / "RESULTS.md").read_text() == render(newest, "results"), "make bench-results"
    assert {one.run.path for one in newest} == set((folder / "results").glob("*.json"))


def test_each_scenario_is_in_one_section_of_the_page():
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(BY_NAME)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0042, "4.2 ms"), (0.218, "218 ms"), (0.9996, "1.0 s"), (11.67, "11.7 s"), (915.8, "916 s")],
)
def test_a_duration_is_rounded(seconds, expected):
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.904, "0.90x"), (1.999, "2.0x"), (9.96, "10x"), (151.97, "152x")]
)
def test_a_ratio_is_rounded(value, expected):
    assert ratio(value) == expected


def test_amounts_are_rounded():
    assert amount(346_480_333, is_bytes=True) == "346 MB"
    assert amount(453, is_bytes=True) == "453"
    assert amount(0.08, is_bytes=True) == "0.08"
    assert amount(3714, is_bytes=False) == "3,714"


def test_a_table_has_no_empty_column_and_escapes_its_separator():
    assert table(["a", "b", "c"], [["1|2", "", "3"]]) == [
        "| a | c |",
        "| --- | --- |",
        "| 1\\|2 | 3 |",
    ]
    assert table(["a"], []) == []
