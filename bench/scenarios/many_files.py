"""The base class of scenarios that run one statement on a table of very many files."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from bench import table_log
from bench.lab import Lab
from bench.scenarios.scenario import Measurement, Scenario
from bench.settings import Settings


class ManyFiles(Scenario):
    """Each round has its own clone of a table whose log is one of those of `open-files`."""

    rounds: ClassVar[int] = 3

    #: The number of files in a smoke test.
    quick_files: ClassVar[int] = 100

    def files(self, settings: Settings) -> int:
        """Return the number of files of the table."""
        return self.quick_files if settings.quick else 100_000

    def prepare(self, lab: Lab) -> None:
        """Write the log."""
        if lab.engine.is_delta:
            table_log.prepare_checkpointed(lab, self.files(lab.settings))

    def measure(self, lab: Lab, repetition: int) -> Measurement:
        """Measure a clone, and delete it."""
        if not lab.engine.is_delta:
            return Measurement(timings={}, answers={})
        path = lab.scratch(f"{self.name}-{repetition}")
        prepared = table_log.prepared_name(self.files(lab.settings))
        lab.storage.clone(lab.prepared_path(prepared), path)
        measured = self.measure_clone(lab, path)
        lab.storage.delete(path)
        return measured

    @abstractmethod
    def measure_clone(self, lab: Lab, path: str) -> Measurement:
        """Run the statement on the table at a path, whose snapshot is not cached yet."""

    def first_deleted_day(self, settings: Settings) -> str:
        """Return the first of the later half of the days, which have half of the files."""
        return table_log.day(min(self.files(settings), table_log.DAYS) // 2)
