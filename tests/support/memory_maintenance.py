"""The maintenance of a log in memory: it records its requests, and fails where a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltaic.commit.ports import MaintenanceSettings

#: Tasks whose success is that of a checkpoint.
_CHECKPOINTS = ("classicCheckpoint", "v2Checkpoint")


@dataclass
class MemoryMaintenance:
    """Implements `deltaic.commit.ports.Maintenance`.

    Attributes
    ----------
    compacts
        What the session says of auto compaction.
    fails
        The names under which tasks fail from now on: ``checkpoint``, ``checksum``, ...
    elsewhere
        The newest checkpoint that another process wrote, which is only found on request.
    done
        Versions and tasks, in order.
    """

    wanted: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    compacts: bool | None = None
    fails: set[str] = field(default_factory=set)
    elsewhere: int = -1
    done: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    looked: int = 0
    _known: int = -1
    _failed: set[str] = field(default_factory=set)

    def settings(self) -> MaintenanceSettings:
        return self.wanted

    def compacts_files(self) -> bool | None:
        return self.compacts

    def newest_checkpoint(self, not_below: int) -> int:
        if self._known < not_below:
            self.looked += 1
            self._known = max(self._known, self.elsewhere)
        return self._known

    def failed(self) -> frozenset[str]:
        return frozenset(self._failed)

    def request(self, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"background": False, "tasks": list(tasks)}

    def run(self, version: int, tasks: Sequence[Mapping[str, Any]]) -> None:
        for task in tasks:
            kind = "checkpoint" if task["task"] in _CHECKPOINTS else task["task"]
            if kind in self.fails:
                self._failed.add(kind)
                continue
            self._failed.discard(kind)
            self.done.append((version, task))
            if kind == "checkpoint":
                self._known = max(self._known, version)

    def versions(self, *names: str) -> list[int]:
        """Return the versions after which one of these tasks was done."""
        return [version for version, task in self.done if task["task"] in names]
