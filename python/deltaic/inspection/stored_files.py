"""Compares the directory of a table with its log: missing files, and files for VACUUM."""

from __future__ import annotations

import base64
import os
import string
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltaic.inspection.log_files import LOG_DIRECTORY
from deltaic.inspection.state import DataFile, DeletionVector, TableState, Tombstone
from deltaic.protocol.properties import is_true

#: The alphabets of Z85, which the protocol uses, and of Python's Base85.
_Z85 = f"{string.digits}{string.ascii_lowercase}{string.ascii_uppercase}.-:+=^!/*?&<>()[]{{}}@%$#"
_B85 = f"{string.digits}{string.ascii_uppercase}{string.ascii_lowercase}!#$%&()*+-;<=>?@^_`{{|}}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_UUID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """What is in the directory of a table.

    Attributes
    ----------
    missing
        The data files and files of deletion vectors that the table needs and that do not exist.
    num_unused, unused_bytes
        The files that the table does not need any more, and that have outlived the retention.
    """

    missing: tuple[str, ...]
    num_unused: int
    unused_bytes: int


def compare(
    table: Path, state: TableState, partition_columns: Sequence[str], cutoff_ms: int
) -> StoredFiles | None:
    """Return which files are missing and unused; None if no file of the table is there.

    A copy of `_delta_log` has none, and says nothing about the files of the table.

    Parameters
    ----------
    partition_columns
        Their names, as in the names of directories.
    cutoff_ms
        Files that were removed or written since are kept.
    """
    root = os.path.realpath(table)
    needed = {path for file in state.files.values() for path in _paths(root, file)}
    properties = {} if state.metadata is None else state.metadata.configuration
    hides_metadata = "delta.universalFormat.enabledFormats" in properties or any(
        is_true(properties, f"delta.enableIcebergCompatV{version}") for version in (1, 2, 3)
    )
    stored = dict(_stored(root, tuple(f"{c}=" for c in partition_columns), hides_metadata))
    missing = [path for path in needed if path not in stored and not os.path.exists(path)]
    if needed and len(missing) == len(needed):
        return None
    retained = {
        path
        for tombstone in state.tombstones.values()
        if tombstone.deletion_timestamp_ms >= cutoff_ms
        for path in _paths(root, tombstone)
    }
    sizes = [
        status.st_size
        for path, status in stored.items()
        if status.st_mtime_ns < cutoff_ms * 1_000_000
        and path not in needed
        and path not in retained
    ]
    return StoredFiles(tuple(sorted(missing)), len(sizes), sum(sizes))


def _paths(root: str, file: DataFile | Tombstone) -> Iterator[str]:
    """Return the location of a file, and that of its deletion vector, if they are local."""
    yield from _local(root, file.path)
    if file.deletion_vector is not None:
        yield from _vector_path(root, file.deletion_vector)


def _local(root: str, path: str) -> Iterator[str]:
    if os.path.isabs(path):
        yield os.path.realpath(path)
    elif "://" not in path:
        is_plain = "//" not in path and not path.startswith(".") and "/." not in path
        yield f"{root}/{path}" if is_plain else os.path.normpath(f"{root}/{path}")


def _vector_path(root: str, vector: DeletionVector) -> Iterator[str]:
    name = vector.path_or_inline_dv
    if vector.storage_type == "p":
        yield from _local(root, name.removeprefix("file://").removeprefix("file:"))
    elif vector.storage_type == "u" and len(name) >= _UUID_LENGTH:
        prefix, encoded = name[:-_UUID_LENGTH], name[-_UUID_LENGTH:]
        try:
            identifier = uuid.UUID(bytes=base64.b85decode(encoded.translate(_TO_B85)))
        except ValueError:
            return
        yield os.path.join(root, prefix, f"deletion_vector_{identifier}.bin")


def _stored(
    root: str, partition_prefixes: tuple[str, ...], hides_metadata: bool
) -> Iterator[tuple[str, os.stat_result]]:
    """Return the files below the table that VACUUM does not leave alone by their names."""

    def is_hidden(name: str) -> bool:
        if name.startswith(("_change_data", "_delta_index", *partition_prefixes)):
            return False
        return name.startswith(("_", ".")) or (hides_metadata and name == "metadata")

    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if is_hidden(entry.name) or (folder == root and entry.name == LOG_DIRECTORY):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.is_file():
                try:
                    yield entry.path, entry.stat()
                except FileNotFoundError:
                    continue
