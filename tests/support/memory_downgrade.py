"""What DROP FEATURE needs of a log in memory, which stands for a real one as `memory_log` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from deltaic.commands.definitions.rewritten_definition import plan_without_mapping
from deltaic.commit.downgrade import HistoricUse
from deltaic.commit.ports import CommitSummary
from deltaic.commit.transaction import commit
from deltaic.protocol.actions import Metadata
from deltaic.protocol.features import features_in_use


class MemoryDowngrade:
    """Implements `deltaic.commit.downgrade.Downgrade` for the table of a `MemoryLog`.

    Attributes
    ----------
    at_once
        Whether the session drops features at once.
    older
        The paths of the files that hold older types.
    checkpoints
        The versions with a classic checkpoint.
    first
        The first version that is left in the log.
    now_ms
        The time at which the log is truncated.
    between
        Called before each step, with its name.
    """

    at_once = True

    def __init__(self) -> None:
        super().__init__()
        self.older: set[str] = set()
        self.checkpoints: list[int] = []
        self.first = 0
        self.now_ms = 0
        self.between: Callable[[str], None] = lambda step: None

    def downgrade(self, table: str) -> MemoryDowngrade:
        """Return this log."""
        return self

    def drops_features_at_once(self) -> bool:
        """Return what `at_once` says."""
        return self.at_once

    def rewrite_files(self: Any, feature: str) -> int:
        """Rewrite files under new names, as REORG does."""
        from tests.support.memory_log import MemoryCommit, MemoryFile, keep_definition

        self.between("rewrite")
        old = [
            file
            for file in self.files()
            if feature == "columnMapping"
            or (feature == "deletionVectors" and file.dv_id is not None)
            or (feature == "typeWidening" and file.path in self.older)
        ]
        if not old and feature != "columnMapping":
            self.between("nothing to rewrite")
            return 0
        plan, operation = keep_definition(self, self.version), "REORG"
        if feature == "columnMapping":
            plan = plan_without_mapping(self.table, self.snapshot(self.table))
            operation = "REMOVE COLUMN MAPPING"
        prepared = MemoryCommit(
            self,
            operation,
            removes=[file.path for file in old],
            adds=[MemoryFile(f"{file.path}-new", file.value) for file in old],
            data_change=False,
            plan=plan,
        )
        commit(prepared, self)
        return len(old)

    def files_use(self: Any, version: int, feature: str) -> bool:
        """Return whether files of a version have deletion vectors or row IDs."""
        self.between("check")
        files = self.files(version)
        if feature == "rowTracking":
            return any(file.base_row_id is not None for file in files)
        return any(file.dv_id is not None for file in files)

    def prepare_without_row_ids(self: Any, summary: CommitSummary) -> Any:
        """Prepare a commit that adds every file without its row IDs."""
        self.between("row ids")
        tracked = [f for f in self.files(summary.read_version) if f.base_row_id is not None]
        if not tracked:
            return None
        adds = [replace(file, base_row_id=None) for file in tracked]
        return replace(self.prepare_metadata_commit(summary), adds=adds, data_change=False)

    def prepare_vector_tombstones(self: Any, summary: CommitSummary) -> Any:
        """Prepare tombstones for the vectors in the tombstones of files."""
        removes = [body for v in range(self.version + 1) for body in self.actions(v, "remove")]
        vectors = {body["deletionVector"]["pathOrInlineDv"] for body in removes if _has_dv(body)}
        new = sorted(vectors - {body["path"] for body in removes})
        if not new:
            return None
        return replace(self.prepare_metadata_commit(summary), removes=new, data_change=False)

    def write_checkpoint(self: Any, version: int) -> None:
        """Record the checkpoint."""
        self.between("checkpoint")
        self.checkpoints.append(version)

    def truncate_log(self: Any, retention_ms: int, protected_version: int) -> None:
        """Forget the versions before the newest checkpoint that is old enough."""
        expired = [v for v in self.checkpoints if self.time_ms(v) <= self.now_ms - retention_ms]
        if expired and max(expired) >= protected_version:
            self.first = max(expired)

    def newest_use(
        self: Any, feature: str, last: int, protected_version: int
    ) -> HistoricUse | None:
        """Return the newest version that uses the feature."""
        if feature == "checkpointProtection":
            using = [protected_version - 1] if self.first < protected_version else []
        else:
            using = list(self._versions_using(feature, last))
        if not using:
            return None
        later = [v for v in self.checkpoints if v > using[-1]]
        return HistoricUse(using[-1], self.time_ms(min(later)) if later else None)

    def _versions_using(self: Any, feature: str, last: int) -> Iterator[int]:
        is_active = False
        for version in range(last + 1):
            for body in self.actions(version, "metaData"):
                is_active = feature in features_in_use(Metadata.from_json(body), self.table)
            bodies = [*self.actions(version, "add"), *self.actions(version, "remove")]
            has_vector = feature == "deletionVectors" and any(map(_has_dv, bodies))
            if version >= self.first and (is_active or has_vector):
                yield version


def _has_dv(body: Mapping[str, Any]) -> bool:
    return "deletionVector" in body
