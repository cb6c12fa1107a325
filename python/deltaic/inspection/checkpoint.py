"""Reads checkpoints of every kind (Protocol § Checkpoints), with pyarrow where they are Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltaic.inspection.log_files import CheckpointFiles, LogFile, log_file
from deltaic.inspection.state import TableState
from deltaic.protocol.validation.log import parse_commit

#: The columns of a checkpoint that are read; a name stands for all fields below it.
_COLUMNS = (
    "protocol",
    "metaData",
    "domainMetadata",
    "txn.appId",
    "checkpointMetadata.version",
    "sidecar.path",
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "remove.deletionTimestamp",
    "remove.deletionVector",
)
_BATCH_ROWS = 16_384


class UnreadableCheckpoint(Exception):
    """A checkpoint that cannot be read; an older one, or the commits, may be read instead."""


class PyArrowMissing(Exception):
    """A checkpoint is a Parquet file, which cannot be read without pyarrow."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was read.

    Attributes
    ----------
    kind
        ``classic``, ``multi-part`` or ``v2``.
    size_bytes
        The size of all its files, sidecars included.
    """

    version: int
    kind: str
    num_parts: int
    num_sidecars: int
    size_bytes: int
    modified_ms: int


def read_checkpoint(directory: Path, checkpoint: CheckpointFiles, state: TableState) -> Checkpoint:
    """Add the actions of a checkpoint to a state, which is empty.

    Raises
    ------
    UnreadableCheckpoint
        If a file is missing or damaged.
    PyArrowMissing
        If it needs pyarrow, which is not installed.
    """
    try:
        sidecars, is_v2 = _read_top(checkpoint, state)
        if checkpoint.is_uuid_named and not is_v2:
            raise UnreadableCheckpoint("it has no checkpointMetadata")
        files = [_sidecar(directory, path) for path in sidecars]
        for file in files:
            for kind, body in _parquet_actions(file.path):
                state.apply(kind, body)
    except OSError as problem:
        raise UnreadableCheckpoint(str(problem)) from problem
    except (ValueError, RecursionError) as problem:
        raise UnreadableCheckpoint(str(problem) or type(problem).__name__) from problem
    parts = checkpoint.files
    kind = "multi-part" if len(parts) > 1 else "classic"
    return Checkpoint(
        version=checkpoint.version,
        kind="v2" if is_v2 else kind,
        num_parts=len(parts),
        num_sidecars=len(files),
        size_bytes=sum(file.size_bytes for file in (*parts, *files)),
        modified_ms=max(file.modified_ms for file in parts),
    )


def _read_top(checkpoint: CheckpointFiles, state: TableState) -> tuple[list[str], bool]:
    """Return the paths of the sidecars, and whether the checkpoint is a V2 checkpoint."""
    sidecars, is_v2 = [], False
    for file in checkpoint.files:
        is_json = file.name.endswith(".json")
        actions = _json_actions(file.path) if is_json else _parquet_actions(file.path)
        for kind, body in actions:
            if kind == "sidecar":
                sidecars.append(str(body.get("path")))
            elif kind == "checkpointMetadata":
                is_v2 = True
                if body.get("version") != checkpoint.version:
                    raise UnreadableCheckpoint(f"it says that it is of {body.get('version')}")
            else:
                state.apply(kind, body)
    return sidecars, is_v2 or bool(sidecars)


def _sidecar(directory: Path, path: str) -> LogFile:
    return log_file(Path(directory, "_sidecars", unquote(path)))


def _json_actions(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    actions: list[tuple[str, Any]] = parse_commit(path.read_text(encoding="utf-8"))
    for kind, body in actions:
        if isinstance(body, Mapping):
            yield kind, body
        elif body is not None:
            raise ValueError(f"the action {kind} is no object")


def _parquet_actions(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    parquet = _parquet()
    arrow_error = import_module("pyarrow").ArrowException
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(_COLUMNS)):
                for kind, column in zip(batch.schema.names, batch.columns, strict=True):
                    for body in column.drop_null().to_pylist(maps_as_pydicts="lossy"):
                        yield kind, body
    except arrow_error as problem:
        raise ValueError(str(problem)) from problem


def _parquet() -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as problem:
        raise PyArrowMissing from problem
