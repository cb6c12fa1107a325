"""Which statements a table needs, and why."""

from __future__ import annotations

from collections.abc import Iterator

from deltaic.inspection.facts import (
    FileFacts,
    LogFacts,
    ProtocolFacts,
    Recommendation,
    RowFacts,
)
from deltaic.inspection.file_facts import MAX_DELETED_ROWS_RATIO
from deltaic.inspection.units import count, duration, percent, size

#: The default of `spark.deltaic.autoCompact.minNumFiles`.
MIN_FILES_TO_COMPACT = 50
#: The share of files without statistics that is not worth a rewrite.
MAX_WITHOUT_STATISTICS_RATIO = 0.1
#: From so many intervals without a checkpoint on, the next commit of Deltaic writes one.
_CHECKPOINT_INTERVALS = 2


def recommendations(
    path: str,
    version: int,
    protocol: ProtocolFacts,
    files: FileFacts,
    rows: RowFacts,
    log: LogFacts,
    *,
    has_shallow_clones: bool,
) -> tuple[Recommendation, ...]:
    """Return the statements in the order in which they should run.

    Parameters
    ----------
    path
        The table's directory.
    has_shallow_clones
        Whether some of the unused files may be those of clones, which VACUUM keeps.
    """
    table = f"delta.`{path.replace('`', '``')}`"
    found = [*_rewrites(table, files, rows), *_vacuum(table, log, has_shallow_clones)]
    if _needs_checkpoint(version, log):
        found = _with_checkpoint(table, found, log)
    if protocol.is_readable and protocol.is_writable:
        return tuple(found)
    lacking = protocol.not_readable_because or protocol.not_writable_because
    engine = f"with an engine that supports {', '.join(lacking)}, as Deltaic does not"
    return tuple(Recommendation(r.statement, f"{r.reason} ({engine})") for r in found)


def _rewrites(table: str, files: FileFacts, rows: RowFacts) -> Iterator[Recommendation]:
    reasons = []
    if files.num_files_to_compact >= MIN_FILES_TO_COMPACT:
        partitions = ""
        if files.num_partitions > 1:
            partitions = f", in {count(files.num_partitions_with_small_files, 'partition')}"
        reasons.append(
            f"{count(files.num_files_to_compact, 'file')} could be joined with others: they are "
            f"smaller than {size(files.small_file_bytes)}{partitions}"
        )
    without = files.num_files_to_compact_without_statistics
    if without > MAX_WITHOUT_STATISTICS_RATIO * files.num_files:
        reasons.append(
            f"{count(without, 'file')} without statistics, which no query can skip, would get them"
        )
    ratio = rows.deleted_rows_ratio
    if ratio is not None and ratio > MAX_DELETED_ROWS_RATIO:
        deleted = f"{percent(ratio)} of the rows in the files are deleted"
        if not reasons:
            yield Recommendation(f"REORG TABLE {table} APPLY (PURGE)", deleted)
            return
        reasons.append(deleted)
    elif reasons and rows.num_files_over_deleted_rows_ratio:
        over = count(rows.num_files_over_deleted_rows_ratio, "file")
        reasons.append(f"more than {percent(MAX_DELETED_ROWS_RATIO)} are deleted in {over}")
    if reasons:
        yield Recommendation(f"OPTIMIZE {table}", "; ".join(reasons))


def _vacuum(table: str, log: LogFacts, has_shallow_clones: bool) -> Iterator[Recommendation]:
    retention = log.deleted_file_retention_ms
    if retention is None:
        return
    if log.num_unused_files:
        most = "up to " if has_shallow_clones else ""
        unused = f"{most}{count(log.num_unused_files, 'file')}"
        total = size(log.unused_files_size_bytes or 0)
        reason = f"{unused} ({total}) have not been needed for {duration(retention)}"
        yield Recommendation(f"VACUUM {table}", reason)
    elif log.num_unused_files is None and log.num_expired_tombstones:
        removed = count(log.num_expired_tombstones, "file")
        reason = f"{removed} were removed more than {duration(retention)} ago and may still exist"
        yield Recommendation(f"VACUUM {table}", reason)


def _needs_checkpoint(version: int, log: LogFacts) -> bool:
    interval = log.checkpoint_interval
    newest = 0 if log.checkpoint is None else log.checkpoint.version
    return interval is not None and version - newest >= _CHECKPOINT_INTERVALS * interval


def _with_checkpoint(
    table: str, found: list[Recommendation], log: LogFacts
) -> list[Recommendation]:
    """Add a statement that commits, so that a checkpoint is written; one of those found does."""
    where = "and there is no checkpoint" if log.checkpoint is None else "since the checkpoint"
    reason = (
        f"a reader has to read {count(log.num_commits_since_checkpoint, 'commit')} {where}; "
        "any commit of Deltaic now writes one"
    )
    if not found:
        return [Recommendation(f"VACUUM {table}", f"{reason}, and VACUUM commits in any case")]
    return [Recommendation(found[0].statement, f"{found[0].reason}; {reason}"), *found[1:]]
