"""The files of ``_delta_log``, by their names (Protocol § Delta Log Entries, § Checkpoints)."""

from __future__ import annotations

import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deltaic.exceptions import error

LOG_DIRECTORY = "_delta_log"
#: A version is a number of 64 bits, with a sign.
_LARGEST_VERSION = f"{2**63 - 1:020d}"
#: Commits that a coordinator or a catalog may not have published yet.
STAGED_DIRECTORIES = ("_staged_commits", "_commits")

#: ``00000000000000000007.json``
_COMMIT = re.compile(r"([0-9]{20})\.json")
#: ``00000000000000000010.checkpoint.parquet``
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
#: ``00000000000000000010.checkpoint.0000000002.0000000003.parquet``
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
#: ``00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json`` or ``.parquet``
_UUID = re.compile(r"([0-9]{20})\.checkpoint\.[0-9A-Za-z-]{36}\.(?:json|parquet)")
#: ``00000000000000000004.00000000000000000006.compacted.json``
_COMPACTION = re.compile(r"[0-9]{20}\.[0-9]{20}\.compacted\.json")
#: ``00000000000000000007.crc``
_CHECKSUM = re.compile(r"([0-9]{20})\.crc")
#: ``00000000000000000008.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json``
_STAGED = re.compile(r"([0-9]{20})\.[0-9A-Za-z-]{36}\.json")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log."""

    path: Path
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """The files of one complete checkpoint, without its sidecars.

    Attributes
    ----------
    is_uuid_named
        Whether only readers of V2 checkpoints find it.
    """

    version: int
    files: tuple[LogFile, ...]
    is_uuid_named: bool = False

    @property
    def name(self) -> str:
        """The name of the first file."""
        return self.files[0].name


@dataclass(frozen=True, slots=True)
class LogFiles:
    """All files of a log.

    Attributes
    ----------
    checkpoints
        The complete ones; the newest is first.
    num_incomplete_checkpoints
        Versions that only have some parts of a checkpoint.
    checksums
        The versions with a checksum file.
    unpublished
        The staged commits of versions after the newest published one.
    """

    directory: Path
    commits: dict[int, LogFile]
    checkpoints: tuple[CheckpointFiles, ...]
    num_incomplete_checkpoints: int
    num_compactions: int
    checksums: frozenset[int]
    unpublished: tuple[str, ...]
    size_bytes: int

    @property
    def newest_version(self) -> int:
        """The newest version that has a commit or a complete checkpoint."""
        versions = [*self.commits, *(checkpoint.version for checkpoint in self.checkpoints)]
        return max(versions)


def list_log(location: str, table: Path) -> LogFiles:
    """Return the files of the log of a table.

    Parameters
    ----------
    location
        The table as the user names it.
    table
        Its directory.

    Raises
    ------
    TableStateError
        If the directory has no log, or one without a commit and a complete checkpoint.
    OSError
        If the log cannot be listed.
    """
    directory = table / LOG_DIRECTORY
    commits: dict[int, LogFile] = {}
    checkpoints: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, LogFile]] = defaultdict(dict)
    checksums: set[int] = set()
    num_compactions = size_bytes = 0
    for file in _files(directory):
        size_bytes += file.size_bytes
        if file.name[:20] > _LARGEST_VERSION and file.name[:20].isdigit():
            continue
        if found := _COMMIT.fullmatch(file.name):
            commits[int(found[1])] = file
        elif found := _CLASSIC.fullmatch(file.name):
            checkpoints.append(CheckpointFiles(int(found[1]), (file,)))
        elif found := _UUID.fullmatch(file.name):
            checkpoints.append(CheckpointFiles(int(found[1]), (file,), is_uuid_named=True))
        elif found := _PART.fullmatch(file.name):
            version, part, of = map(int, found.groups())
            if 1 <= part <= of:
                parts[version, of][part] = file
        elif found := _CHECKSUM.fullmatch(file.name):
            checksums.add(int(found[1]))
        elif _COMPACTION.fullmatch(file.name):
            num_compactions += 1
    complete = {key: found for key, found in parts.items() if len(found) == key[1]}
    for (version, _), found_parts in complete.items():
        files = tuple(file for _, file in sorted(found_parts.items()))
        checkpoints.append(CheckpointFiles(version, files))
    if not commits and not checkpoints:
        raise error("DELTAIC_NOT_A_TABLE", table=location)
    checkpoints.sort(key=lambda found: (found.version, found.is_uuid_named, found.name))
    newest = max([*commits, *(checkpoint.version for checkpoint in checkpoints)])
    return LogFiles(
        directory=directory,
        commits=commits,
        checkpoints=tuple(reversed(checkpoints)),
        num_incomplete_checkpoints=len({v for v, _ in parts.keys() - complete.keys()}),
        num_compactions=num_compactions,
        checksums=frozenset(checksums),
        unpublished=tuple(_unpublished(directory, newest)),
        size_bytes=size_bytes + sum(file.size_bytes for file in _files(directory / "_sidecars")),
    )


def log_file(path: Path) -> LogFile:
    """Return a file with its size and its modification time."""
    status = path.stat()
    return LogFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _files(directory: Path) -> Iterator[LogFile]:
    for path in _entries(directory):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # A temporary file, or one that log cleanup has deleted since.
        if stat.S_ISREG(status.st_mode):
            yield LogFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _entries(directory: Path) -> Iterable[Path]:
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _unpublished(directory: Path, newest: int) -> Iterator[str]:
    for folder in STAGED_DIRECTORIES:
        for path in _entries(directory / folder):
            found = _STAGED.fullmatch(path.name)
            if found and int(found[1]) > newest:
                yield f"{folder}/{path.name}"
