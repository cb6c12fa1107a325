"""Run an operation while another one commits, and check by brute force what the two leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from deltaic.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentModificationError,
    ConcurrentTransactionException,
    MetadataChangedException,
    ProtocolChangedException,
)
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.pair_operations import BASE, Operation, Rows
from tests.support.table_builder import rows_of

ERRORS: dict[str, type[ConcurrentModificationError] | None] = {
    ".": None,
    "a": ConcurrentAppendException,
    "d": ConcurrentDeleteDeleteException,
    "r": ConcurrentDeleteReadException,
    "m": MetadataChangedException,
    "t": ConcurrentTransactionException,
    "p": ProtocolChangedException,
}

#: The share of deleted rows from which on a file is rewritten.
MAX_DELETED_RATIO = "deltaic.deletionVectors.maxDeletedRowsRatio"


def build_base(
    spark: SparkSession,
    path: Path,
    partitioned: str,
    properties: Mapping[str, str] | None = None,
    more_columns: str = "",
) -> None:
    """Build a table of `BASE` with a file for each value of p, by commits 0 to 2."""
    stored = {
        "delta.enableDeletionVectors": "true",
        "delta.feature.domainMetadata": "supported",
        MAX_DELETED_RATIO: "1",
        **(properties or {}),
    }
    table = f"delta.`{path}`"
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in stored.items())
    spark.sql(
        f"CREATE TABLE {table} (id INT, p INT, v STRING{more_columns and ', '}{more_columns})"
        f" USING delta {partitioned}"
        f" TBLPROPERTIES ({listed})"
    )
    for p in (1, 2):
        rows = ", ".join(map(str, (row for row in BASE if row[1] == p)))
        columns = "*, 0" if more_columns else "*"
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ {columns} FROM VALUES {rows}")


def check(
    spark: SparkSession,
    base: Path,
    table: str,
    mine: Operation,
    theirs: Operation,
    expected: type[ConcurrentModificationError] | None,
    either_order: bool = True,
) -> None:
    log.copy_table(base, table)
    named = f"delta.`{table}`"
    problem: ConcurrentModificationError | None = None
    with committed_meanwhile(lambda: theirs.run(spark, named)):
        try:
            mine.run(spark, named)
        except ConcurrentModificationError as caught:
            problem = caught
    assert isinstance(problem, expected or type(None)), repr(problem)
    left: Rows = Counter((row[0], row[1], row[2]) for row in rows_of(spark, table))
    if problem is not None:
        assert problem.winning_version == 3
        assert problem.winning_operation == log.commit_info(table, 3)["operation"]
        assert table in problem.table and problem.reason
        assert log.newest(table) == 3
        assert left == theirs.apply(BASE)
        return
    assert log.newest(table) == 4
    orders = [mine.apply(theirs.apply(BASE))]
    if either_order:
        orders.append(theirs.apply(mine.apply(BASE)))
    assert left in orders
