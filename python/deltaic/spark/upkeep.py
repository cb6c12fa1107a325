"""The upkeep of a table's log, done by the JVM: ``io.deltaic.upkeep`` behind the port of hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from deltaic.commit.hooks import AUTO_COMPACT_SETTING
from deltaic.commit.ports import UpkeepSettings
from deltaic.exceptions import error
from deltaic.spark.errors import jvm_errors
from deltaic.spark.told import SessionState, UpkeepState

#: Each setting of ours, with the older one that it stands in for.
_PART_SIZE = ("spark.deltaic.checkpoint.partSize", "spark.databricks.delta.checkpoint.partSize")
_CHECKSUM = ("spark.deltaic.checksum.enabled", "spark.databricks.delta.writeChecksumFile.enabled")
_COMPACTION = ("spark.deltaic.logCompaction.interval",)
_BACKGROUND = ("spark.deltaic.upkeep.background",)


class JvmUpkeep:
    """Implements `deltaic.commit.ports.Upkeep`.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    session
        The JVM's session.
    prepared
        A commit of the table, in the JVM.
    state
        What is known of the session, whose settings count.
    told
        What is known of the table's upkeep, if that need not be asked for.
    """

    def __init__(
        self,
        api: Any,
        session: Any,
        prepared: Any,
        state: SessionState,
        told: UpkeepState | None = None,
    ) -> None:
        self._api = api
        self._session = session
        self._prepared = prepared
        self._state = state
        self._told = told

    @cached_property
    def _known(self) -> UpkeepState:
        if self._told is not None:
            return self._told
        with jvm_errors():
            return UpkeepState.from_json(json.loads(self._api.upkeepState(self._prepared)))

    def settings(self) -> UpkeepSettings:
        """Return what the session asks for."""
        defaults = UpkeepSettings()
        return UpkeepSettings(
            writes_checksums=self._is_true(_CHECKSUM, default=True),
            part_size=self._number(_PART_SIZE, minimum=1),
            sidecar_size=defaults.sidecar_size,
            compaction_interval=self._number(_COMPACTION, minimum=0) or 0,
            wants_small_files_compacted=(
                (self._state.first((AUTO_COMPACT_SETTING,))[1] or "").strip().casefold()
                not in ("", "false")
            ),
        )

    def newest_checkpoint(self, not_below: int) -> int:
        """Return the newest checkpoint known, -1 if none is."""
        if self._known.newest_checkpoint >= not_below:
            return self._known.newest_checkpoint
        with jvm_errors():
            return int(self._api.newestCheckpoint(self._session, self._prepared, not_below))

    def failed(self) -> frozenset[str]:
        """Return the names of the tasks that failed when they were tried last."""
        return self._known.failed

    def run(self, version: int, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Do the tasks, on a thread of the JVM's unless the session wants to wait for them."""
        request = {
            "background": self._is_true(_BACKGROUND, default=True),
            "tasks": [dict(task) for task in tasks],
        }
        with jvm_errors():
            self._api.upkeep(self._session, self._prepared, version, json.dumps(request))

    def _is_true(self, names: Sequence[str], *, default: bool) -> bool:
        name, value = self._state.first(names)
        if value is None:
            return default
        if value.strip().casefold() not in ("true", "false"):
            raise _invalid(name, value, "it is true or false")
        return value.strip().casefold() == "true"

    def _number(self, names: Sequence[str], *, minimum: int) -> int | None:
        name, value = self._state.first(names)
        if value is None:
            return None
        if not value.strip().isdecimal() or int(value) < minimum:
            raise _invalid(name, value, f"it is a whole number from {minimum} on")
        return int(value)


def _invalid(setting: str, value: str, reason: str) -> Exception:
    return error("DELTAIC_INVALID_SESSION_SETTING", setting=setting, value=value, reason=reason)
