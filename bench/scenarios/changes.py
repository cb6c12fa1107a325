"""One statement that changes rows of a table: its time, result and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from bench.lab import Answer, Lab
from bench.scenarios.scenario import Measurement


@dataclass(slots=True)
class Changes:
    """Collects a measurement statement by statement."""

    lab: Lab
    timings: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    def run(self, key: str, path: str, statement: str) -> None:
        """Time a statement on a table whose snapshot is cached; its row count is an answer."""
        before = self.lab.storage.size(path)
        self.timings[key], result = self.lab.timed(partial(self.lab.spark.sql, statement))
        after = self.lab.storage.size(path)
        rows = int(result.collect()[0][0])
        written = after.size_bytes - before.size_bytes
        self.answers[changed_rows(key)] = [[str(rows)]]
        self.metrics[f"{key}_written_files"] = after.files - before.files
        self.metrics[f"{key}_written_bytes"] = written
        self.metrics[f"{key}_written_bytes_per_changed_row"] = written / max(1, rows)

    def measurement(self) -> Measurement:
        """Return the collected measurement."""
        return Measurement(self.timings, self.answers, metrics=self.metrics)


def changed_rows(key: str) -> str:
    """Return the name of the answer for the number of rows that a statement changed."""
    return f"{key}: changed rows"
