"""Checks the log of a table in a local directory, without Spark and without a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from deltaic.exceptions import error
from deltaic.protocol.validation.log import Violation, parse_commit, validate_log
from deltaic.protocol.validation.log_state import Action

#: A commit, such as ``00000000000000000012.json``, and no compaction, checkpoint or checksum.
_COMMIT = re.compile(r"([0-9]{20})\.json")
#: A checkpoint, such as ``00000000000000000012.checkpoint.parquet``.
_CHECKPOINT = re.compile(r"[0-9]{20}\.checkpoint\..+")
#: A URI such as ``s3a://bucket/table`` or ``file:/table``; a drive letter is no scheme.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of a validation.

    Attributes
    ----------
    num_commits
        The number of commits in the log.
    violations
        The violations of the protocol, by version.
    """

    num_commits: int
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        return (
            f"{_counted(self.num_commits, 'commit')}, {_counted(len(self.violations), 'violation')}"
        )


def validate_table(location: str) -> Validation:
    """Check every commit of a table against the protocol's requirements on writers.

    Only commit files are read: checkpoints, log compactions and checksums repeat their contents.

    Parameters
    ----------
    location
        The directory of the table: a local path, or a URI with the scheme ``file``.

    Raises
    ------
    InvalidArgumentError
        If the location is not local.
    TableStateError
        If there is no table, or its first commits were cleaned up.
    OSError
        If a file of the log cannot be read.
    """
    table = local_directory(location, "DELTAIC_VALIDATION_NEEDS_LOCAL_PATH")
    files = _commit_files(location, table / "_delta_log")
    damage: list[Violation] = []
    violations = validate_log(_readable_commits(files, damage))
    return Validation(len(files), (*violations, *damage))


def local_directory(location: str, condition: str) -> Path:
    """Return the directory that a path or a URI with the scheme ``file`` names.

    Raises
    ------
    InvalidArgumentError
        With this condition, if the location is not local.
    """
    uri = _URI.fullmatch(location)
    if uri is None:
        return Path(location)
    scheme, path = uri.groups()
    host = ""
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
    if scheme.lower() != "file" or host not in ("", "localhost"):
        raise error(condition, path=location)
    return Path("/", unquote(path))


def _commit_files(table: str, log: Path) -> list[tuple[int, Path]]:
    """Return all commit files with their versions, ascending from version 0."""
    try:
        paths = sorted(log.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        paths = []
    commits = [(int(name[1]), path) for path in paths if (name := _COMMIT.fullmatch(path.name))]
    if commits and commits[0][0] == 0:
        return commits
    if not commits and not any(_CHECKPOINT.fullmatch(path.name) for path in paths):
        raise error("DELTAIC_NOT_A_TABLE", table=table)
    first = f"version {commits[0][0]}" if commits else "a checkpoint"
    raise error("DELTAIC_VALIDATION_NEEDS_ALL_COMMITS", table=table, first=first)


def _readable_commits(
    files: Sequence[tuple[int, Path]], damage: list[Violation]
) -> Iterator[tuple[int, Sequence[Action]]]:
    """Yield the commits up to the first that is not valid JSON, which is added to `damage`.

    The state of the table after that commit is unknown, so no later commit can be checked.
    """
    for version, path in files:
        try:
            actions = parse_commit(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as problem:
            rule = "Protocol § Delta Log Entries: a commit holds one JSON object a line"
            detail = f"{path.name} cannot be read, so no later commit was checked: {problem}"
            damage.append(Violation(version, rule, detail))
            return
        yield version, actions


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
