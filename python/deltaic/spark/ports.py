"""The ports of `deltaic.commit.ports`, implemented by the JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from deltaic._version import __version__
from deltaic.commit.downgrade import Downgrade
from deltaic.commit.isolation import Isolation, session_isolation
from deltaic.commit.parquet_source import ParquetFiles, ParquetRequest
from deltaic.commit.ports import (
    ClonedVersion,
    CommitRecord,
    CommitSummary,
    FileCounts,
    IncompatibleFile,
    Maintenance,
    PreparedCommit,
    TableSnapshot,
    WinningCommit,
)
from deltaic.commit.transaction import RetryPolicy
from deltaic.commit.unused_files import UnusedFiles, VacuumRequest, VacuumSettings
from deltaic.exceptions import DeltaError, error
from deltaic.protocol.actions import Metadata
from deltaic.spark.downgrade import JvmDowngrade
from deltaic.spark.errors import jvm_errors
from deltaic.spark.interrupts import Interruption
from deltaic.spark.maintenance import JvmMaintenance
from deltaic.spark.parquet_files import JvmParquetFiles
from deltaic.spark.prefetched_state import PrefetchedState, SessionState
from deltaic.spark.unused_files import JvmUnusedFiles

#: Prefixes of session settings for table properties; the last one takes precedence.
_DEFAULT_PREFIXES = (
    "spark.databricks.delta.properties.defaults.",
    "spark.deltaic.properties.defaults.",
)
_ANY_PROPERTIES = (
    "spark.deltaic.allowArbitraryProperties.enabled",
    "spark.databricks.delta.allowArbitraryProperties.enabled",
)
_NO_COLUMNS = (
    "spark.deltaic.createEmptySchemaTable.enabled",
    "spark.databricks.delta.createEmptySchemaTable.enabled",
)
_PROTOCOL_DOWNGRADE = (
    "spark.deltaic.restore.protocolDowngradeAllowed",
    "spark.databricks.delta.restore.protocolDowngradeAllowed",
)
_CHECKS_RETENTION = (
    "spark.deltaic.retentionDurationCheck.enabled",
    "spark.databricks.delta.retentionDurationCheck.enabled",
)
_VACUUM_LOG = (
    "spark.deltaic.vacuum.logging.enabled",
    "spark.databricks.delta.vacuum.logging.enabled",
)
_FAST_DROP = (
    "spark.deltaic.tableFeatures.fastDropFeature.enabled",
    "spark.databricks.delta.tableFeatures.fastDropFeature.enabled",
)
_ISOLATION_LEVEL = "spark.deltaic.isolationLevel"
_USER_METADATA = (
    "spark.deltaic.commitInfo.userMetadata",
    "spark.databricks.delta.commitInfo.userMetadata",
)
_MAX_ATTEMPTS = ("spark.deltaic.maxCommitAttempts", "spark.databricks.delta.maxCommitAttempts")

#: The first row ID if files get none.
_NO_ROW_IDS = -1

_NOT_A_TABLE = "DELTAIC_NOT_A_TABLE"
_COMMIT_NOT_FOUND = "DELTAIC_COMMIT_NOT_FOUND"


class JvmTableAccess:
    """The tables, reached through ``io.deltaic.spark.PythonApi``.

    Parameters
    ----------
    api
        ``io.deltaic.spark.PythonApi``.
    session
        The JVM's session that reads the tables.
    prefetched
        The prefetched state.
    prepared
        The current commit, if there is one; it provides the newest version of its own table.
    """

    def __init__(
        self,
        api: Any,
        session: Any,
        prefetched: PrefetchedState | None = None,
        prepared: Any = None,
    ) -> None:
        self._api = api
        self._session = session
        self._prefetched = prefetched if prefetched is not None else PrefetchedState()
        self._prepared = prepared
        self._newest_is_prefetched = self._prefetched.is_of_command
        self._interruption = Interruption()

    @cached_property
    def _state(self) -> SessionState:
        if self._prefetched.session is not None:
            return self._prefetched.session
        with jvm_errors():
            return SessionState.from_json(json.loads(self._api.sessionState(self._session)))

    @property
    def jvm_makes_first_attempt(self) -> bool:
        """Whether the JVM makes the first attempt of a commit without files."""
        return self._prefetched.is_of_command

    def snapshot(self, table: str, version: int | None = None) -> TableSnapshot | None:
        """Return a version's snapshot, the newest by default; None if there is no table."""
        if version is None and self._newest_is_prefetched and table == self._prefetched.table:
            # Once: the command may have committed before it looks again.
            self._newest_is_prefetched = False
            return self._prefetched.snapshot
        snapshot = self._prefetched.snapshot_of(table, version)
        if snapshot is not None:
            return snapshot
        summary = self._prefetched.summary
        if version is None and summary is not None and summary.table == table:
            return _if_table(self._prepared.newestNonFileActions)
        number = -1 if version is None else version
        return _if_table(lambda: self._api.snapshot(self._session, table, number))

    def summary(self, table: str) -> TableSnapshot | None:
        """Return the newest snapshot with the size of the table, without its transactions."""
        return _if_table(lambda: self._api.summary(self._session, table))

    def commits(self, table: str, limit: int | None) -> Sequence[CommitRecord]:
        """Return the newest commits first."""
        number = -1 if limit is None else limit
        with jvm_errors():
            infos = self._api.commitInfos(self._session, table, number)
        return [CommitRecord.from_json(body) for body in json.loads(infos)]

    def prepare_metadata_commit(self, summary: CommitSummary) -> PreparedCommit:
        """Prepare a commit that holds no file."""
        with jvm_errors():
            prepared = self._api.prepareMetadataCommit(self._session, summary.table, summary.json())
        return self._unless_interrupted(summary, prepared)

    def prepare_row_ids(self, summary: CommitSummary) -> PreparedCommit | None:
        """Prepare a commit that adds every file without row IDs again; None if all have them."""
        with jvm_errors():
            prepared = self._api.prepareRowIds(self._session, summary.table, summary.json())
        return None if prepared is None else self._unless_interrupted(summary, prepared)

    def prepare_without_row_ids(self, summary: CommitSummary) -> PreparedCommit | None:
        """Prepare a commit that adds every file without its row IDs; None if no file has any."""
        with jvm_errors():
            prepared = self._api.prepareWithoutRowIds(self._session, summary.table, summary.json())
        return None if prepared is None else self._unless_interrupted(summary, prepared)

    def prepare_vector_tombstones(self, summary: CommitSummary) -> PreparedCommit | None:
        """Prepare tombstones for files of deletion vectors that no file uses; None if all exist."""
        with jvm_errors():
            prepared = self._api.prepareVectorTombstones(
                self._session, summary.table, summary.json()
            )
        return None if prepared is None else self._unless_interrupted(summary, prepared)

    def _unless_interrupted(self, summary: CommitSummary, prepared: Any) -> PreparedCommit:
        """Return a commit of a statement that was not interrupted, or that ends a VACUUM."""
        if not summary.operation.kind.is_vacuum:
            self._interruption.check(summary.operation.kind.value, summary.table)
        return JvmPreparedCommit(prepared)

    def downgrade(self, table: str) -> Downgrade:
        """Return access to a table whose protocol loses a feature."""
        return JvmDowngrade(self._api, self._session, table)

    def drops_features_at_once(self) -> bool:
        """Return whether DROP FEATURE protects the history instead of waiting for its end."""
        return self._is_on(_FAST_DROP)

    def prepare_restore(self, summary: CommitSummary, version: int) -> PreparedCommit:
        """Prepare a commit after which the table has the files of an older version."""
        with jvm_errors():
            prepared = self._api.prepareRestore(
                self._session, summary.table, version, summary.json()
            )
        return self._unless_interrupted(summary, prepared)

    def prepare_clone(self, summary: CommitSummary, source: ClonedVersion) -> PreparedCommit:
        """Prepare a commit after which the table has the files of a version of another table."""
        with jvm_errors():
            prepared = self._api.prepareClone(
                self._session,
                summary.table,
                source.table,
                source.version,
                source.is_shallow,
                summary.json(),
            )
        return self._unless_interrupted(summary, prepared)

    def read_parquet(self, table: str, request: ParquetRequest) -> ParquetFiles:
        """List the Parquet files in a table's folder and read their footers."""
        with jvm_errors():
            return JvmParquetFiles(self._api.readParquet(self._session, table, request.json()))

    def prepare_conversion(self, summary: CommitSummary, files: ParquetFiles) -> PreparedCommit:
        """Prepare a commit that creates a table of the files."""
        found = _of_jvm(files)
        return self._unless_interrupted(summary, found.prepare(summary.json()))

    def prepare_parquet_clone(
        self, summary: CommitSummary, files: ParquetFiles, *, is_shallow: bool
    ) -> PreparedCommit:
        """Prepare a commit after which the table has Parquet files, or copies of them."""
        with jvm_errors():
            prepared = self._api.prepareParquetClone(
                self._session,
                summary.table,
                _of_jvm(files).conversion,
                is_shallow,
                summary.json(),
            )
        return self._unless_interrupted(summary, prepared)

    def version_at(self, table: str, timestamp: str) -> int:
        """Return the newest version that was committed at or before a timestamp."""
        with jvm_errors():
            return int(self._api.versionAt(self._session, table, timestamp))

    def generate_manifests(self, table: str) -> None:
        """Write the symlink manifests of all partitions, and delete those of others."""
        with jvm_errors():
            self._api.generateManifests(self._session, table)

    def allows_protocol_downgrade(self) -> bool:
        """Return whether RESTORE may remove features from the protocol."""
        name, value = self._state.first(_PROTOCOL_DOWNGRADE)
        return value is not None and _boolean(name, value)

    def first_violation(self, table: str, version: int, name: str, condition: str) -> str | None:
        """Return a row of the version that breaks the condition; None if all rows meet it."""
        with jvm_errors():
            response = self._api.firstViolation(self._session, table, version, name, condition)
        row: str | None = json.loads(response)
        return row

    def columns_in(
        self, schema_string: str, expressions: Sequence[str]
    ) -> Sequence[Sequence[Sequence[str]] | None]:
        """Return the paths of the columns that each SQL expression over a schema references."""
        with jvm_errors():
            response = self._api.columnsIn(
                self._session, schema_string, json.dumps(list(expressions))
            )
        return list(json.loads(response))

    def iceberg_incompatible_file(
        self, table: str, version: int, metadata: Metadata, compat_version: int
    ) -> IncompatibleFile | None:
        """Return a file that an Iceberg reader could not use under a definition, if any."""
        body = json.dumps(metadata.to_json())
        with jvm_errors():
            response = self._api.firstIcebergIncompatibleFile(
                self._session, table, version, body, compat_version
            )
        found = json.loads(response)
        return None if found is None else IncompatibleFile.from_json(found)

    def vacuum_settings(self) -> VacuumSettings:
        """Return the session's settings of VACUUM."""
        return VacuumSettings(
            checks_retention=self._is_on(_CHECKS_RETENTION), writes_log=self._is_on(_VACUUM_LOG)
        )

    def _is_on(self, names: tuple[str, str]) -> bool:
        name, value = self._state.first(names)
        return value is None or _boolean(name, value)

    def find_unused_files(self, table: str, request: VacuumRequest) -> UnusedFiles:
        """Find the files that VACUUM deletes."""
        with jvm_errors():
            found = self._api.findUnusedFiles(
                self._session, table, json.dumps(request.to_json(), ensure_ascii=False)
            )
        unused = JvmUnusedFiles(found)
        try:
            self._interruption.check("VACUUM", table)
        except DeltaError:
            unused.close()
            raise
        return unused

    def default_properties(self) -> Mapping[str, str]:
        """Return the table properties that the session sets for every new table."""
        return {
            f"delta.{name.removeprefix(prefix)}": value
            for prefix in _DEFAULT_PREFIXES
            for name, value in self._state.settings.items()
            if name.startswith(prefix)
        }

    def allows_unknown_properties(self) -> bool:
        """Return whether the session stores unknown ``delta.`` and ``deltaic.`` properties."""
        name, value = self._state.first(_ANY_PROPERTIES)
        return value is not None and _boolean(name, value)

    def allows_no_columns(self) -> bool:
        """Return whether the session can create tables without columns."""
        return self._is_on(_NO_COLUMNS)

    def user_metadata(self) -> Mapping[str, str]:
        """Return the session's user metadata as an option of a commit, if it is set."""
        _, value = self._state.first(_USER_METADATA)
        return {} if value is None else {"usermetadata": value}

    def engine_info(self) -> str:
        """Return the ``engineInfo`` of commits."""
        return f"Deltaic/{__version__} Apache-Spark/{self._state.spark_version}"

    def isolation_level(self) -> Isolation | None:
        """Return the isolation level that the session sets for tables that set none."""
        value = self._state.settings.get(_ISOLATION_LEVEL)
        return None if value is None else session_isolation(_ISOLATION_LEVEL, value)

    def maintenance(self, prepared: PreparedCommit | None) -> Maintenance:
        """Return the maintenance of the table that a commit belongs to, or that a command is on."""
        if prepared is not None and not isinstance(prepared, JvmPreparedCommit):
            raise TypeError(f"not a commit of the JVM: {prepared!r}")
        return JvmMaintenance(
            self._api,
            self._session,
            self._prefetched.table or "",
            None if prepared is None else prepared.handle,
            self._state,
            # A command may have committed before, and its maintenance may have run.
            None if self._prefetched.is_of_command and prepared else self._prefetched.maintenance,
        )

    def retry_policy(self) -> RetryPolicy:
        """Return how often the session's commits are tried."""
        name, value = self._state.first(_MAX_ATTEMPTS)
        return RetryPolicy() if value is None else RetryPolicy(max_attempts=_positive(name, value))

    def require_valid_settings(self) -> None:
        """Refuse invalid settings of the commit before any data is written."""
        self.retry_policy()
        self.isolation_level()


def _if_table(snapshot: Callable[[], str]) -> TableSnapshot | None:
    try:
        with jvm_errors():
            response = snapshot()
    except DeltaError as problem:
        if problem.condition == _NOT_A_TABLE:
            return None
        raise
    return TableSnapshot.from_json(json.loads(response))


def _boolean(setting: str, value: str) -> bool:
    folded = value.strip().casefold()
    if folded not in ("true", "false"):
        raise error(
            "DELTAIC_INVALID_SESSION_SETTING",
            setting=setting,
            value=value,
            reason="it is true or false",
        )
    return folded == "true"


def _positive(setting: str, value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise error(
            "DELTAIC_INVALID_SESSION_SETTING",
            setting=setting,
            value=value,
            reason="it is a whole number from 1 on",
        )
    return int(value)


class JvmPreparedCommit:
    """A commit whose files are in the JVM: ``io.deltaic.spark.commit.PreparedCommit``.

    Parameters
    ----------
    prepared
        The commit in the JVM.
    summary
        Its summary, if it is prefetched.
    """

    def __init__(self, prepared: Any, summary: CommitSummary | None = None) -> None:
        self._prepared = prepared
        self._summary = summary

    @property
    def handle(self) -> Any:
        """The commit in the JVM."""
        return self._prepared

    def summary(self) -> CommitSummary:
        """Describe the commit."""
        if self._summary is not None:
            return self._summary
        with jvm_errors():
            return CommitSummary.from_json(json.loads(self._prepared.summary()))

    def try_commit(
        self, version: int, action_lines: Sequence[str], first_row_id: int | None = None
    ) -> bool:
        """Write the commit as `version`; False if the version exists."""
        row_id = _NO_ROW_IDS if first_row_id is None else first_row_id
        with jvm_errors():
            response = self._prepared.tryCommit(version, "\n".join(action_lines), row_id)
            reply = json.loads(response)
        return bool(reply["status"] == "committed")

    def winning_commit(self, version: int) -> WinningCommit | None:
        """Describe the commit of `version`; None if there is none."""
        try:
            with jvm_errors():
                response = self._prepared.winningCommit(version)
        except DeltaError as problem:
            if problem.condition == _COMMIT_NOT_FOUND:
                return None
            raise
        return WinningCommit.from_json(json.loads(response))

    def has_matching_row(self, versions: Sequence[int]) -> bool:
        """Return whether any of these commits added a row that our reads select."""
        with jvm_errors():
            return bool(self._prepared.hasMatchingRow(json.dumps(list(versions))))

    def has_deleted_row(self, versions: Sequence[int]) -> bool:
        """Return whether any of these commits deleted a row that affects our result."""
        with jvm_errors():
            return bool(self._prepared.hasDeletedRow(json.dumps(list(versions))))

    def rebase_deletion_vectors(self, version: int) -> FileCounts:
        """Rebase the deletion vectors of this commit onto those of the commits up to `version`."""
        with jvm_errors():
            return FileCounts.from_json(json.loads(self._prepared.rebaseDeletionVectors(version)))


def _of_jvm(files: ParquetFiles) -> JvmParquetFiles:
    if not isinstance(files, JvmParquetFiles):
        raise TypeError(f"not files of the JVM: {files!r}")
    return files
