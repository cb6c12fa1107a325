"""Shows the facts about a table to people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaic.exceptions import printable
from deltaic.inspection.facts import (
    FeatureSupport,
    FileFacts,
    Inspection,
    LogFacts,
    ProtocolFacts,
    RowFacts,
)
from deltaic.inspection.units import count, duration, percent, size, time_text

_LABEL_WIDTH = 18
_BAR_WIDTH = 40
#: The character of bars.
BLOCK = "\u2588"


def render(inspection: Inspection, *, has_blocks: bool = True) -> str:
    """Return the text, with one section for each part of the table.

    Parameters
    ----------
    has_blocks
        Whether the bars of the histogram are of block characters.
    """
    bar = BLOCK if has_blocks else "#"
    sections = [
        _section("Table", _table(inspection)),
        _section("Protocol", _protocol(inspection.protocol)),
        _section("Properties", inspection.properties.items()),
        _section("Files", _files(inspection.files, bool(inspection.partition_columns))),
        _section("File sizes", _histogram(inspection.files, bar)),
        _section("Rows", _rows(inspection.rows, inspection.files)),
        _section("Log", _log(inspection.log)),
        _list("Warnings", inspection.warnings),
        _list("What to run", _what_to_run(inspection)),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def one_line(text: str) -> str:
    """Return text that can be printed in one line: a damaged log holds anything."""
    line = " ".join(printable(text).replace("\t", " ").splitlines())
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _section(title: str, lines: Iterable[tuple[str, str | None]]) -> str:
    shown = [(label, value) for label, value in lines if value is not None]
    if not shown:
        return ""
    width = max(_LABEL_WIDTH, *(len(one_line(label)) for label, _ in shown))
    rows = [f"  {one_line(label):<{width}}  {one_line(value)}".rstrip() for label, value in shown]
    return "\n".join([title, *rows])


def _list(title: str, lines: Iterable[str]) -> str:
    shown = [f"  {line}" for line in lines]
    return "\n".join([title, *shown]) if shown else ""


def _table(inspection: Inspection) -> Iterator[tuple[str, str | None]]:
    yield "path", inspection.path
    yield "id", inspection.id
    yield "name", inspection.name
    yield "description", inspection.description
    yield "format", inspection.format
    created_ms = inspection.created_ms
    yield "created", None if created_ms is None else time_text(created_ms)
    yield "version", f"{inspection.version}, {time_text(inspection.timestamp_ms)}"
    yield "last operation", inspection.operation
    yield "written by", inspection.engine
    columns = inspection.num_columns
    yield "columns", "unknown" if columns is None else f"{columns:,}"
    yield "partitioned by", ", ".join(inspection.partition_columns) or None
    yield "clustered by", ", ".join(inspection.clustering_columns) or None


def _protocol(protocol: ProtocolFacts) -> Iterator[tuple[str, str | None]]:
    yield "versions", f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"
    yield "read by Deltaic", _support(protocol.is_readable, protocol.not_readable_because)
    yield "written by Deltaic", _support(protocol.is_writable, protocol.not_writable_because)
    for feature in protocol.features:
        yield feature.name, _feature(feature)


def _support(is_supported: bool, reasons: Iterable[str]) -> str:
    return "yes" if is_supported else f"no: {', '.join(reasons)}"


def _feature(feature: FeatureSupport) -> str:
    sides = "reader and writer" if feature.is_reader_feature else "writer"
    use = {True: ", in use", False: ", not in use", None: ""}[feature.is_in_use]
    support = "supported"
    if not feature.is_readable:
        support = "NOT SUPPORTED"
    elif not feature.is_writable:
        support = "supported for reading, NOT for writing"
    return f"{sides} feature{use}, {support}"


def _files(files: FileFacts, is_partitioned: bool) -> Iterator[tuple[str, str | None]]:
    yield "files", f"{files.num_files:,}, {size(files.size_bytes)}"
    if is_partitioned:
        yield "partitions", f"{files.num_partitions:,}"
    if files.smallest_bytes is None or files.median_bytes is None or files.largest_bytes is None:
        return
    sizes = map(size, (files.smallest_bytes, files.median_bytes, files.largest_bytes))
    yield "size", "smallest {}, median {}, largest {}".format(*sizes)
    small = f"{files.num_small_files:,} below {size(files.small_file_bytes)}"
    if files.num_small_files:
        small += f", {size(files.small_files_size_bytes)}"
    if is_partitioned and files.num_partitions_with_small_files:
        several = count(files.num_partitions_with_small_files, "partition")
        verb = "has" if files.num_partitions_with_small_files == 1 else "have"
        small += f"; {several} {verb} several, {files.num_files_to_compact:,} in total"
    yield "small files", small
    without = files.num_files_without_statistics
    yield "without statistics", f"{count(without, 'file')}" if without else None
    missing = files.num_missing_files
    yield "missing files", f"{missing:,}" if missing else None


def _histogram(files: FileFacts, bar: str) -> Iterator[tuple[str, str]]:
    buckets = list(files.histogram)
    while buckets and not buckets[0].num_files:
        del buckets[0]
    while buckets and not buckets[-1].num_files:
        del buckets[-1]
    largest = max((bucket.num_files for bucket in buckets), default=0)
    for bucket in buckets:
        limit = bucket.max_bytes
        label = f"from {size(bucket.min_bytes)}" if limit is None else f"below {size(limit)}"
        width = -(-bucket.num_files * _BAR_WIDTH // largest)
        total = f", {size(bucket.size_bytes)}" if bucket.num_files else ""
        yield label, f"{bar * width} {bucket.num_files:,}{total}"


def _rows(rows: RowFacts, files: FileFacts) -> Iterator[tuple[str, str | None]]:
    if rows.num_rows is not None:
        yield "rows", f"{rows.num_rows:,}"
    else:
        known = files.num_files - files.num_files_without_statistics
        in_files = f"{rows.num_rows_in_files:,} in the {count(known, 'file')} that have statistics"
        yield "rows", f"unknown; {in_files}" if known else "unknown: no file has statistics"
    if not rows.num_files_with_deletion_vectors:
        yield "deleted rows", "0"
        return
    ratio = rows.deleted_rows_ratio
    share = "" if ratio is None else f", {percent(ratio)} of the rows in the files"
    yield "deleted rows", f"{rows.num_deleted_rows:,}{share}"
    vectors = count(rows.num_files_with_deletion_vectors, "file")
    stored = f"{size(rows.deletion_vector_bytes)}, {percent(rows.deletion_vector_bytes_ratio)}"
    yield "deletion vectors", f"of {vectors}, {stored} of all bytes"


def _log(log: LogFacts) -> Iterator[tuple[str, str | None]]:
    oldest = log.oldest_commit_version
    since = "" if oldest is None else f" from version {oldest} on"
    yield "commits", f"{count(log.num_commits, 'file')}{since}; the log has {size(log.size_bytes)}"
    checkpoint = log.checkpoint
    if checkpoint is None:
        yield "checkpoint", "none"
    else:
        files = [checkpoint.kind]
        if checkpoint.num_parts > 1:
            files.append(count(checkpoint.num_parts, "part"))
        if checkpoint.num_sidecars:
            files.append(count(checkpoint.num_sidecars, "sidecar"))
        files += [size(checkpoint.size_bytes), f"{duration(checkpoint.age_ms)} old"]
        yield "checkpoint", f"version {checkpoint.version}: {', '.join(files)}"
    interval = log.checkpoint_interval
    every = "" if interval is None else f", with a checkpoint every {interval:,} commits"
    yield "commits to read", f"{log.num_commits_since_checkpoint:,}{every}"
    yield "compactions", f"{log.num_compactions:,}" if log.num_compactions else None
    yield "checksum", "present" if log.has_checksum else "none of this version"
    yield "log retention", _retention(log.log_retention_ms)
    yield "file retention", _retention(log.deleted_file_retention_ms)
    transactions = log.num_transactions
    yield "applications", f"{count(transactions, 'transaction')}" if transactions else None
    tombstones = f"{log.num_tombstones:,}"
    if log.num_expired_tombstones:
        tombstones += f", {log.num_expired_tombstones:,} older than the retention"
    yield "removed files", tombstones
    if log.num_unused_files is not None:
        unused = f"{log.num_unused_files:,}, {size(log.unused_files_size_bytes or 0)}"
        yield "unused files", f"{unused} (VACUUM deletes them)" if log.num_unused_files else "0"


def _retention(milliseconds: int | None) -> str:
    return "not valid" if milliseconds is None else duration(milliseconds)


def _what_to_run(inspection: Inspection) -> Iterator[str]:
    if not inspection.recommendations:
        yield "nothing"
    for recommendation in inspection.recommendations:
        yield f"{_printable(recommendation.statement)};"
        yield f"  -- {one_line(recommendation.reason)}"


def _printable(statement: str) -> str:
    text = printable(statement)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
