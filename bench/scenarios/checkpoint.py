"""Writing a checkpoint of a table of many files whose snapshot is cached."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench import table_log
from bench.lab import Lab
from bench.scenarios.scenario import Measure, Measurement, Scenario
from bench.settings import Settings


def _sizes(settings: Settings) -> tuple[int, ...]:
    return (100,) if settings.quick else (10_000, 100_000)


class Checkpoint(Scenario):
    """How long the log's next checkpoint takes, with statistics as JSON and as columns."""

    name: ClassVar[str] = "checkpoint"
    rounds: ClassVar[int] = 5

    def measures(self, settings: Settings) -> tuple[Measure, ...]:
        """Return one row for each number of files."""
        return tuple(
            Measure(f"checkpoint-{files}", f"write a checkpoint of {files:,} files")
            for files in _sizes(settings)
        )

    def prepare(self, lab: Lab) -> None:
        """Write the logs, which are those of `open-files`."""
        if lab.engine.is_delta:
            for files in _sizes(lab.settings):
                table_log.prepare_checkpointed(lab, files)

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Read a clone; then write the checkpoint of its newest version."""
        timings: dict[str, float] = {}
        metrics: dict[str, float] = {}
        for files in _sizes(lab.settings) if lab.engine.is_delta else ():
            path = lab.scratch(f"checkpoint-{files}-{repetition}")
            lab.storage.clone(lab.prepared_path(table_log.prepared_name(files)), path)
            table_log.plan(lab, path, files // 2)
            timings[f"checkpoint-{files}"], _ = lab.timed(partial(table_log.checkpoint, lab, path))
            name = table_log.next_checkpoint(path)
            metrics[f"size_bytes_{files}"] = lab.storage.size(name).size_bytes
            lab.storage.delete(path)
        return Measurement(timings=timings, answers={}, metrics=metrics)
