"""Gives the same work to all engines, in turns, and checks that they return the same results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import lineitem
from bench.engines import Engine
from bench.messages import Request
from bench.processes import Worker, WorkerError
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings
from bench.turns import turns


class WrongAnswerError(Exception):
    """Engines disagree about the content of a table."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One engine's measurement in one round."""

    engine: str
    round: int
    measurement: Measurement


@dataclass(slots=True)
class ScenarioResult:
    """The result of a scenario.

    Attributes
    ----------
    error
        Why the scenario ended early, or None. Earlier samples are retained.
    """

    name: str
    measures: tuple[Measure, ...]
    samples: list[Sample] = field(default_factory=list)
    error: str | None = None


def check_answers(round_samples: Sequence[Sample]) -> None:
    """Compare the answers of all engines of a round.

    Raises
    ------
    WrongAnswerError
        If two answers to the same question differ.
    """
    by_question: dict[str, dict[str, str]] = {}
    for sample in round_samples:
        for question, answer in sample.measurement.answers.items():
            by_question.setdefault(question, {})[sample.engine] = str(answer)
    for question, answers in by_question.items():
        if len(set(answers.values())) > 1:
            listed = "\n".join(f"  {engine}: {answer}" for engine, answer in answers.items())
            raise WrongAnswerError(f"The engines disagree about '{question}':\n{listed}")


class Runner:
    """Owns the workers. Only one of them works at a time."""

    def __init__(
        self,
        engines: Sequence[Engine],
        settings: Settings,
        logs: Path,
        timeout_s: float,
        rounds: int | None = None,
    ) -> None:
        self._engines = engines
        self._settings = settings
        self._logs = logs
        self._timeout_s = timeout_s
        self._rounds = rounds
        self._workers: dict[str, Worker] = {}
        self.facts: dict[str, dict[str, str | float]] = {}

    def run(self, scenario: Scenario) -> ScenarioResult:
        """Run all rounds of a scenario.

        If an engine fails or returns a wrong result, the scenario ends; earlier samples are
        retained.
        """
        result = ScenarioResult(scenario.name, scenario.measures(self._settings))
        try:
            if scenario.needs_lineitem:
                lineitem.generate(self._settings)
            if scenario.new_workers:
                self.close()
            for engine in self._engines:
                self._prepare(self._long_lived(engine), scenario)
            warmups, rounds = self._plan(scenario)
            for number in range(warmups + rounds):
                samples: list[Sample] = []
                for sample in self._round(scenario, number):
                    samples.append(sample)
                    check_answers(samples)
                    if number >= warmups:
                        result.samples.append(sample)
                _progress(scenario, number, warmups, samples)
        except (WorkerError, WrongAnswerError) as error:
            result.error = str(error)
        return result

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()

    def _plan(self, scenario: Scenario) -> tuple[int, int]:
        warmups = 0 if self._settings.quick else scenario.warmup_rounds
        return warmups, self._rounds or (1 if self._settings.quick else scenario.rounds)

    def _round(self, scenario: Scenario, number: int) -> Iterator[Sample]:
        for engine in turns(self._engines, number):
            with self._worker(scenario, engine) as worker:
                reply = worker.ask(Request("measure", scenario.name, number))
                assert reply.measurement is not None
                yield Sample(engine.name, number, reply.measurement)

    @contextmanager
    def _worker(self, scenario: Scenario, engine: Engine) -> Iterator[Worker]:
        if scenario.fresh_process:
            with self._start(engine) as worker:
                yield worker
        else:
            worker = self._long_lived(engine)
            self._prepare(worker, scenario)
            yield worker

    def _prepare(self, worker: Worker, scenario: Scenario) -> None:
        if scenario.name not in worker.prepared:
            worker.ask(Request("prepare", scenario.name))
            worker.prepared.add(scenario.name)

    def _long_lived(self, engine: Engine) -> Worker:
        worker = self._workers.get(engine.name)
        if worker is None or not worker.is_alive:
            worker = self._start(engine)
            self._workers[engine.name] = worker
        return worker

    def _start(self, engine: Engine) -> Worker:
        log = self._logs / f"{engine.name}.log"
        worker = Worker(engine, self._settings, log, self._timeout_s)
        self.facts[engine.name] = worker.facts
        return worker


def _progress(scenario: Scenario, number: int, warmups: int, samples: Sequence[Sample]) -> None:
    label = "warm-up" if number < warmups else f"round {number - warmups + 1}"
    listed = ", ".join(
        f"{sample.engine} {sum(sample.measurement.timings.values()):.2f} s" for sample in samples
    )
    print(f"{scenario.name}, {label}: {listed}", flush=True)
