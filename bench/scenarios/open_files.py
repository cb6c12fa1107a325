"""Opening a table of many files from its checkpoint, and planning a query that needs one."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import table_log
from bench.engines import SUBJECT
from bench.lab import Answer, Lab
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings

#: Beyond this many files only the subject is measured.
_MOST_FOR_ALL = 100_000


def _sizes(settings: Settings) -> tuple[int, ...]:
    return (100, 1_000) if settings.quick else (1_000, 10_000, 100_000, 1_000_000)


class OpenFiles(Scenario):
    """Opening a table that a warm session has not read before, by its number of files."""

    name: ClassVar[str] = "open-files"
    rounds: ClassVar[int] = 5

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row for each number of files."""
        return tuple(
            Measure(
                table_log.prepared_name(files),
                f"open a table of {files:,} files and plan a selective query",
            )
            for files in _sizes(settings)
        )

    def prepare(self, lab: Lab) -> None:
        """Write the logs."""
        for files in _sizes_for(lab):
            table_log.prepare_checkpointed(lab, files)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Plan a query on a clone that was not read before, for each number of files."""
        timings: dict[str, float] = {}
        answers: dict[str, Answer] = {}
        metrics: dict[str, float] = {}
        for files in _sizes_for(lab):
            name = table_log.prepared_name(files)
            path = lab.scratch(f"open-{name}-{repetition}")
            lab.storage.clone(lab.prepared_path(name), path)
            used_before = lab.heap_bytes()
            seconds, answer = lab.timed(partial(table_log.plan, lab, path, files // 2))
            timings[name], answers[name] = seconds, answer
            if lab.engine.name == SUBJECT:
                if files == _sizes_for(lab)[-1]:
                    # With fewer files, the heap of the session itself would dominate the result.
                    used_bytes = lab.heap_bytes() - used_before
                    metrics[f"heap_bytes_per_file_{files}"] = round(used_bytes / files)
                    estimated_bytes = lab.held_bytes(path)
                    metrics[f"estimated_bytes_per_file_{files}"] = round(estimated_bytes / files)
                lab.forget(path)
            lab.storage.delete(path)
        return Measurement(timings=timings, answers=answers, metrics=metrics)


def _sizes_for(lab: Lab) -> tuple[int, ...]:
    if not lab.engine.is_delta:
        return ()
    sizes = _sizes(lab.settings)
    return sizes if lab.engine.name == SUBJECT else tuple(n for n in sizes if n <= _MOST_FOR_ALL)
