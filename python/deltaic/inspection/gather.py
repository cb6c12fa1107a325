"""Gathers all facts about a table in a local directory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from deltaic.commands.shallow_clones import DOMAIN as SHALLOW_CLONES
from deltaic.commands.shallow_clones import shallow_clones
from deltaic.commit.clock import wall_clock_ms
from deltaic.exceptions import DeltaError
from deltaic.inspection.advice import recommendations
from deltaic.inspection.facts import (
    CheckpointFacts,
    FeatureSupport,
    Inspection,
    LogFacts,
    ProtocolFacts,
)
from deltaic.inspection.file_facts import file_facts, row_facts, small_file_bytes
from deltaic.inspection.replay import Replayed, replay
from deltaic.inspection.stored_files import StoredFiles, compare
from deltaic.inspection.units import count
from deltaic.protocol.actions import READER_VERSION_WITH_FEATURES, WRITER_VERSION_WITH_FEATURES
from deltaic.protocol.columns.clustering import DOMAIN as CLUSTERING
from deltaic.protocol.columns.clustering import clustering_columns
from deltaic.protocol.columns.schema_edits import quoted_path
from deltaic.protocol.features import (
    canonical_name,
    features_in_use,
    find_feature,
    reader_features,
    supported_features,
    unreadable_features,
    unwritable_features,
)
from deltaic.protocol.in_commit_timestamps import FIELD, is_active
from deltaic.protocol.numbers import whole_number
from deltaic.protocol.properties import interval_ms, property_value, unsupported_properties
from deltaic.protocol.schema import parse_schema
from deltaic.validate import local_directory


def inspect_table(location: str, now_ms: int | None = None) -> Inspection:
    """Return all facts about the newest version of a table, which Deltaic need not support.

    Parameters
    ----------
    location
        The directory of the table: a local path, or a URI with the scheme ``file``.
    now_ms
        The time from which ages are counted; by default the current time.

    Raises
    ------
    InvalidArgumentError
        If the location is not local, or pyarrow is needed and missing.
    TableStateError
        If there is no table, or its log is damaged.
    OSError
        If a file of the log cannot be read.

    Examples
    --------
    >>> inspect_table("/data/trips").files.num_files  # doctest: +SKIP
    12
    """
    directory = local_directory(location, "DELTAIC_INSPECTION_NEEDS_LOCAL_PATH")
    now = wall_clock_ms() if now_ms is None else now_ms
    found = replay(location, directory)
    path = os.path.abspath(directory)
    return _Gathering(path, found, now).inspection()


class _Gathering:
    """Facts about one version; what cannot be found out becomes a warning."""

    def __init__(self, path: str, found: Replayed, now_ms: int) -> None:
        self._path = path
        self._found = found
        self._now_ms = now_ms
        self._warnings = [f"a checkpoint cannot be read: {skipped}" for skipped in found.skipped]

    def inspection(self) -> Inspection:
        found, metadata, state = self._found, self._found.metadata, self._found.state
        protocol = self._protocol()
        retention_ms = self._interval_ms("delta.deletedFileRetentionDuration")
        cutoff_ms = 0 if retention_ms is None else self._now_ms - retention_ms
        stored = self._stored(cutoff_ms)
        num_missing = None if stored is None else len(stored.missing)
        log = self._log(retention_ms, cutoff_ms, stored)
        files = file_facts(
            state.files.values(), small_file_bytes(metadata.configuration), num_missing
        )
        rows = row_facts(state.files.values())
        clustered_by, num_columns = self._columns()
        has_clones = self._has_shallow_clones()
        self._warn_of_unpublished()
        return Inspection(
            path=self._path,
            id=metadata.id,
            name=metadata.name,
            description=metadata.description,
            format=metadata.format_provider,
            created_ms=metadata.created_time_ms,
            version=found.version,
            timestamp_ms=self._timestamp_ms(),
            operation=self._said("operation"),
            engine=self._said("engineInfo"),
            num_columns=num_columns,
            partition_columns=metadata.partition_columns,
            clustering_columns=clustered_by,
            properties=dict(sorted(metadata.configuration.items())),
            protocol=protocol,
            files=files,
            rows=rows,
            log=log,
            warnings=tuple(self._warnings),
            recommendations=recommendations(
                self._path,
                found.version,
                protocol,
                files,
                rows,
                log,
                has_shallow_clones=has_clones,
            ),
        )

    def _protocol(self) -> ProtocolFacts:
        protocol, metadata = self._found.protocol, self._found.metadata
        unreadable = unreadable_features(protocol)
        used: frozenset[str] | None = None
        unwritable: tuple[str, ...] = ()
        not_writable: list[str] = []
        try:
            used = features_in_use(metadata, self._path)
            unwritable = unwritable_features(self._path, protocol, metadata)
        except DeltaError as problem:
            self._warn(problem)
            not_writable.append("its schema")
        if protocol.min_writer_version >= WRITER_VERSION_WITH_FEATURES and (
            protocol.writer_features is None
        ):
            not_writable.append("a protocol without writerFeatures")
        unsupported = unsupported_properties(metadata.configuration)
        not_readable = [*_version("reader", protocol.min_reader_version), *unreadable]
        not_writable += [
            *_version("writer", protocol.min_writer_version),
            *unwritable,
            *(p.name for p in unsupported if p.required_by_writers),
        ]
        listed = supported_features(protocol)
        return ProtocolFacts(
            min_reader_version=protocol.min_reader_version,
            min_writer_version=protocol.min_writer_version,
            features=tuple(
                FeatureSupport(
                    name=name,
                    is_reader_feature=name in reader_features(protocol),
                    is_in_use=self._is_in_use(name, used),
                    is_readable=name not in unreadable,
                    is_writable=name not in unreadable and name not in unwritable,
                )
                for name in sorted(listed)
            ),
            is_readable=not not_readable,
            not_readable_because=tuple(not_readable),
            is_writable=not (not_readable or not_writable),
            not_writable_because=tuple(dict.fromkeys([*not_readable, *not_writable])),
        )

    def _is_in_use(self, name: str, used: frozenset[str] | None) -> bool | None:
        """Return whether a feature is in use; None if the state of a table does not show it."""
        state, canonical = self._found.state, canonical_name(name)
        match canonical:
            case "deletionVectors" if any(f.deletion_vector for f in state.files.values()):
                return True
            case "domainMetadata":
                return bool(state.domains)
            case "clustering":
                return CLUSTERING in state.domains
        feature = find_feature(name)
        if used is None or feature is None or not feature.has_traces:
            return None
        return canonical in used

    def _log(
        self, retention_ms: int | None, cutoff_ms: int, stored: StoredFiles | None
    ) -> LogFacts:
        found = self._found
        log, checkpoint = found.log, found.checkpoint
        tombstones = found.state.tombstones.values()
        interval = whole_number(self._property("delta.checkpointInterval"))
        if log.num_incomplete_checkpoints:
            checkpoints = count(log.num_incomplete_checkpoints, "checkpoint")
            verb = "is" if log.num_incomplete_checkpoints == 1 else "are"
            self._warnings.append(f"{checkpoints} in several parts {verb} not complete")
        facts = None
        if checkpoint is not None:
            facts = CheckpointFacts(
                version=checkpoint.version,
                kind=checkpoint.kind,
                num_parts=checkpoint.num_parts,
                num_sidecars=checkpoint.num_sidecars,
                size_bytes=checkpoint.size_bytes,
                timestamp_ms=checkpoint.modified_ms,
                age_ms=max(0, self._now_ms - checkpoint.modified_ms),
            )
        return LogFacts(
            size_bytes=log.size_bytes,
            num_commits=len(log.commits),
            oldest_commit_version=min(log.commits, default=None),
            num_commits_since_checkpoint=found.version - (checkpoint.version if checkpoint else -1),
            checkpoint=facts,
            checkpoint_interval=interval if interval and interval > 0 else None,
            num_compactions=log.num_compactions,
            has_checksum=found.version in log.checksums,
            log_retention_ms=self._interval_ms("delta.logRetentionDuration"),
            deleted_file_retention_ms=retention_ms,
            num_transactions=len(found.state.transactions),
            num_tombstones=len(tombstones),
            num_expired_tombstones=sum(t.deletion_timestamp_ms < cutoff_ms for t in tombstones),
            num_unused_files=None if stored is None else stored.num_unused,
            unused_files_size_bytes=None if stored is None else stored.unused_bytes,
        )

    def _columns(self) -> tuple[tuple[str, ...], int | None]:
        """Return the clustering columns, and the number of columns."""
        found = self._found
        try:
            num_columns = len(parse_schema(found.metadata.schema_string, self._path).fields)
            columns = clustering_columns(
                self._path, found.protocol, found.metadata, found.state.domains
            )
        except DeltaError as problem:
            self._warn(problem)
            return (), None
        return tuple(quoted_path(column) for column in columns), num_columns

    def _has_shallow_clones(self) -> bool:
        try:
            return bool(shallow_clones(self._path, self._found.state.domains.get(SHALLOW_CLONES)))
        except DeltaError as problem:
            self._warn(problem)
            return True

    def _timestamp_ms(self) -> int:
        found = self._found
        stated = found.state.commit_info.get(FIELD)
        if is_active(found.protocol, found.metadata) and isinstance(stated, int):
            return stated
        commit = found.log.commits.get(found.version)
        if commit is not None:
            return commit.modified_ms
        return 0 if found.checkpoint is None else found.checkpoint.modified_ms

    def _said(self, key: str) -> str | None:
        value = self._found.state.commit_info.get(key)
        return value if isinstance(value, str) else None

    def _property(self, name: str) -> str:
        return property_value(self._found.metadata.configuration, name)

    def _interval_ms(self, name: str) -> int | None:
        value = self._property(name)
        parsed = interval_ms(value)
        if parsed is None:
            self._warnings.append(f"the property {name} is {value!r}, which is no duration")
        return parsed

    def _stored(self, cutoff_ms: int) -> StoredFiles | None:
        """Return what is in the directory; None if it says nothing about the table."""
        found = self._found
        directory, columns = found.log.directory.parent, found.metadata.partition_columns
        try:
            stored = compare(directory, found.state, columns, cutoff_ms)
        except OSError as problem:
            self._warnings.append(f"the files of the table cannot be listed: {problem}")
            return None
        if stored is None:
            self._warnings.append(
                "no file of the table exists: this is a copy of the log, or the files are lost"
            )
        elif stored.missing:
            others = len(stored.missing) - 1
            more = f" and {others} others" if others else ""
            self._warnings.append(f"files of the table are missing: {stored.missing[0]}{more}")
        return stored

    def _warn_of_unpublished(self) -> None:
        unpublished = self._found.log.unpublished
        if unpublished:
            names = ", ".join(unpublished)
            self._warnings.append(f"commits that may not be published are not included: {names}")

    def _warn(self, problem: DeltaError) -> None:
        text = str(problem)
        if text not in self._warnings:
            self._warnings.append(text)


def _version(side: str, version: int) -> Iterator[str]:
    newest = READER_VERSION_WITH_FEATURES if side == "reader" else WRITER_VERSION_WITH_FEATURES
    if version > newest:
        yield f"{side} version {version}"
