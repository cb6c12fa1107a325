"""Counts the files and the rows of a table."""

from __future__ import annotations

import re
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from deltaic.inspection.facts import FileFacts, RowFacts, SizeBucket
from deltaic.inspection.state import DataFile

_KB, _MB, _GB = 1024, 1024**2, 1024**3

#: The limits of the histogram.
BUCKET_LIMITS = (16 * _KB, 64 * _KB, 256 * _KB, _MB, 4 * _MB, 16 * _MB, 64 * _MB, 256 * _MB, _GB)
#: The default of `spark.deltaic.autoCompact.maxFileSize`; files of less than half of it are small.
DEFAULT_TARGET_BYTES = 128 * _MB
#: The default of `spark.deltaic.optimize.minFileSize`.
COMPACTED_BELOW_BYTES = _GB
#: The default of `spark.deltaic.optimize.maxDeletedRowsRatio`.
MAX_DELETED_ROWS_RATIO = 0.05
#: The size of the files that a table should have, which engines other than Deltaic support.
TARGET_PROPERTY = "delta.targetFileSize"

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "k": _KB, "m": _MB, "g": _GB, "t": 1024 * _GB}


def small_file_bytes(properties: Mapping[str, str]) -> int:
    """Return the size below which files are small: half of the size that files should have."""
    found = _SIZE.fullmatch(properties.get(TARGET_PROPERTY, ""))
    target = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    return (target or DEFAULT_TARGET_BYTES) // 2


def file_facts(
    files: Collection[DataFile], small_bytes: int, num_missing_files: int | None
) -> FileFacts:
    """Return the numbers and sizes of files."""
    sizes = sorted(file.size_bytes for file in files)
    small = [file for file in files if file.size_bytes < small_bytes]
    compacted = Counter(f.partition for f in files if f.size_bytes < COMPACTED_BELOW_BYTES)
    several = [n for n in Counter(file.partition for file in small).values() if n > 1]
    return FileFacts(
        num_files=len(sizes),
        size_bytes=sum(sizes),
        num_partitions=len({file.partition for file in files}),
        smallest_bytes=sizes[0] if sizes else None,
        median_bytes=int(statistics.median(sizes)) if sizes else None,
        largest_bytes=sizes[-1] if sizes else None,
        histogram=_histogram(sizes),
        small_file_bytes=small_bytes,
        num_small_files=len(small),
        small_files_size_bytes=sum(file.size_bytes for file in small),
        num_partitions_with_small_files=len(several),
        num_files_to_compact=sum(several),
        num_files_without_statistics=sum(file.num_records is None for file in files),
        num_files_to_compact_without_statistics=sum(
            file.num_records is None
            and file.size_bytes < COMPACTED_BELOW_BYTES
            and compacted[file.partition] > 1
            for file in files
        ),
        num_missing_files=num_missing_files,
    )


def row_facts(files: Collection[DataFile]) -> RowFacts:
    """Return the numbers of rows, as far as files have statistics, and of deleted rows."""
    vectors = [file.deletion_vector for file in files if file.deletion_vector is not None]
    num_deleted = sum(vector.cardinality for vector in vectors)
    counts = [file.num_records for file in files]
    known = [count for count in counts if count is not None]
    is_known = len(known) == len(counts)
    in_files = sum(known)
    vector_bytes = sum(vector.size_bytes for vector in vectors)
    size_bytes = sum(file.size_bytes for file in files) + vector_bytes
    return RowFacts(
        num_rows=in_files - num_deleted if is_known else None,
        num_rows_in_files=in_files,
        num_deleted_rows=num_deleted,
        deleted_rows_ratio=_ratio(num_deleted, in_files) if is_known else None,
        num_files_with_deletion_vectors=len(vectors),
        deletion_vector_bytes=vector_bytes,
        deletion_vector_bytes_ratio=_ratio(vector_bytes, size_bytes),
        num_files_over_deleted_rows_ratio=sum(
            _deleted_ratio(file) > MAX_DELETED_ROWS_RATIO for file in files
        ),
    )


def _histogram(sizes: Sequence[int]) -> tuple[SizeBucket, ...]:
    numbers, totals = Counter[int](), Counter[int]()
    for size in sizes:
        bucket = bisect_right(BUCKET_LIMITS, size)
        numbers[bucket] += 1
        totals[bucket] += size
    lower, upper = (0, *BUCKET_LIMITS), (*BUCKET_LIMITS, None)
    limits = zip(lower, upper, strict=True)
    return tuple(SizeBucket(low, up, numbers[i], totals[i]) for i, (low, up) in enumerate(limits))


def _deleted_ratio(file: DataFile) -> float:
    vector = file.deletion_vector
    return 0.0 if vector is None else _ratio(vector.cardinality, file.num_records or 0)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
