"""The arithmetic of the benchmark; `python -m bench --quick` tests the rest."""

from __future__ import annotations

import pytest

from bench.messages import Reply
from bench.runner import Sample, ScenarioResult, WrongAnswerError, check_answers
from bench.scenarios.scenario import Measure, Measurement, Target
from bench.settings import Settings, root_uri
from bench.summary import Spread, summarize
from bench.turns import turns


def sample(engine: str, number: int, answer: str = "1", **timings: float) -> Sample:
    return Sample(engine, number, Measurement(timings, {"rows": [[answer]]}))


def test_each_round_starts_one_engine_later():
    assert [turns("ABC", number) for number in range(4)] == [
        ["A", "B", "C"],
        ["B", "C", "A"],
        ["C", "A", "B"],
        ["A", "B", "C"],
    ]


def test_equal_answers_pass():
    check_answers([sample("deltaic", 0), sample("delta", 0)])


def test_a_different_answer_is_an_error_that_names_all_answers():
    with pytest.raises(WrongAnswerError, match=r"'rows'(.|\n)*deltaic: .*2(.|\n)*delta: .*1"):
        check_answers([sample("deltaic", 0, answer="2"), sample("delta", 0)])


def test_ratio_is_of_medians_and_its_extremes_are_of_single_rounds():
    rounds = {"deltaic": [1.0, 2.0, 4.0], "delta": [4.0, 6.0, 8.0]}
    samples = [
        sample(engine, number, scan=seconds)
        for engine, timings in rounds.items()
        for number, seconds in enumerate(timings)
    ]
    result = ScenarioResult("scan", (Measure("scan", "a scan"),), samples)

    (summary,) = summarize(result, "deltaic")

    assert summary.seconds == {"deltaic": Spread(2, 1, 4), "delta": Spread(6, 4, 8)}
    assert summary.over_subject == {"delta": Spread(3, 2, 4)}


@pytest.mark.parametrize(
    ("seconds", "is_met"), [(1.3, True), (1.4, True), (1.5, False)], ids=["below", "free", "above"]
)
def test_a_target_is_checked_by_medians_where_its_engine_was_measured(seconds, is_met):
    planning = Target("parquet", 1.3, free_s=0.15)
    measure = Measure("plan", "planning", targets=(planning, Target("delta", 0.5)))
    samples = [sample("deltaic", 0, plan=seconds), sample("parquet", 0, plan=1.0)]

    (summary,) = summarize(ScenarioResult("tpcds", (measure,), samples), "deltaic")

    assert summary.target_results("deltaic") == {planning: is_met}


def test_a_round_that_one_engine_did_not_finish_has_no_ratio_of_its_own():
    samples = [
        sample("deltaic", 0, scan=1.0),
        sample("delta", 0, scan=2.0),
        sample("deltaic", 1, scan=3.0),
    ]
    result = ScenarioResult("scan", (Measure("scan", "a scan"),), samples, error="delta failed")

    (summary,) = summarize(result, "deltaic")

    assert summary.over_subject == {"delta": Spread(1, 2, 2)}


def test_ratio_to_the_baseline_stays_within_an_engine():
    measures = (Measure("plain", "plain"), Measure("dv", "with DV", baseline="plain"))
    samples = [sample("deltaic", 0, plain=2.0, dv=3.0), sample("delta", 0, plain=1.0, dv=4.0)]

    plain, dv = summarize(ScenarioResult("scan", measures, samples), "deltaic")

    assert plain.over_baseline == {}
    assert dv.over_baseline == {"deltaic": Spread(1.5, 1.5, 1.5), "delta": Spread(4, 4, 4)}


def test_an_engine_without_a_timing_is_left_out():
    result = ScenarioResult("deletes", (Measure("dv", "deletes"),), [sample("parquet", 0)])

    (summary,) = summarize(result, "deltaic")

    assert (summary.seconds, summary.over_subject) == ({}, {})


def test_messages_and_settings_survive_the_wire():
    reply = Reply(measurement=Measurement({"cold": 1.5}, {"cold": [["1", "2"]]}))
    settings = Settings(scale=0.5, queries=("q3", "q14a"), confs={"spark.executor.memory": "8g"})

    assert Reply.from_line(reply.to_line()) == reply
    assert Settings.from_json(settings.to_json()) == settings


def test_a_bare_path_is_local_and_a_uri_stays():
    assert Settings(data=root_uri("/data")).is_local
    assert not Settings(data=root_uri("hdfs:///bench/")).is_local
    assert root_uri("hdfs:///bench/") == "hdfs:///bench"
