"""The port for post-commit maintenance, implemented by ``io.deltaic.maintenance`` of the JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from deltaic.commit.ports import MaintenanceSettings
from deltaic.exceptions import error
from deltaic.spark.errors import jvm_errors
from deltaic.spark.prefetched_state import MaintenanceState, SessionState

#: Each setting of Deltaic, with the setting of delta-spark that is its fallback.
_PART_SIZE = ("spark.deltaic.checkpoint.partSize", "spark.databricks.delta.checkpoint.partSize")
_CHECKSUM = ("spark.deltaic.checksum.enabled", "spark.databricks.delta.writeChecksumFile.enabled")
_COMPACTION = ("spark.deltaic.logCompaction.interval",)
_AUTO_COMPACT = ("spark.deltaic.autoCompact.enabled", "spark.databricks.delta.autoCompact.enabled")
_BACKGROUND = ("spark.deltaic.maintenance.background",)


class JvmMaintenance:
    """Implements `deltaic.commit.ports.Maintenance`.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    session
        The JVM's session.
    table
        The path of the table.
    prepared
        A commit of the table, in the JVM; None if the JVM makes it later.
    state
        The session, whose settings apply.
    prefetched
        The state of the table's maintenance, if it is prefetched.
    """

    def __init__(
        self,
        api: Any,
        session: Any,
        table: str,
        prepared: Any,
        state: SessionState,
        prefetched: MaintenanceState | None = None,
    ) -> None:
        self._api = api
        self._session = session
        self._table = table
        self._prepared = prepared
        self._state = state
        self._prefetched = prefetched

    @cached_property
    def _maintenance_state(self) -> MaintenanceState:
        if self._prefetched is not None:
            return self._prefetched
        with jvm_errors():
            state = self._api.maintenanceState(self._prepared)
        return MaintenanceState.from_json(json.loads(state))

    def settings(self) -> MaintenanceSettings:
        """Return the settings of the session."""
        defaults = MaintenanceSettings()
        return MaintenanceSettings(
            writes_checksums=self._is_true(_CHECKSUM, default=True),
            part_size=self._number(_PART_SIZE, minimum=1),
            sidecar_size=defaults.sidecar_size,
            compaction_interval=self._number(_COMPACTION, minimum=0) or 0,
        )

    def compacts_files(self) -> bool | None:
        """Return whether the session has small files compacted after commits; None if not set."""
        if self._state.first(_AUTO_COMPACT)[1] is None:
            return None
        return self._is_true(_AUTO_COMPACT, default=False)

    def newest_checkpoint(self, not_below: int) -> int:
        """Return the version of the newest known checkpoint, -1 if there is none."""
        if self._maintenance_state.newest_checkpoint >= not_below:
            return self._maintenance_state.newest_checkpoint
        with jvm_errors():
            if self._prepared is None:
                return int(self._api.newestCheckpoint(self._session, self._table, not_below))
            return int(self._api.newestCheckpoint(self._session, self._prepared, not_below))

    def failed(self) -> frozenset[str]:
        """Return the names of the tasks that failed when they last ran."""
        return self._maintenance_state.failed

    def run(self, version: int, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Run the tasks on a background thread of the JVM, unless the session waits for them."""
        request = json.dumps(self.request(tasks))
        with jvm_errors():
            self._api.maintenance(self._session, self._prepared, version, request)

    def request(self, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request with which the JVM runs the tasks."""
        background = self._is_true(_BACKGROUND, default=True)
        return {"background": background, "tasks": [dict(task) for task in tasks]}

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
