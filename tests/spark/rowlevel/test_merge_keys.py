"""A MERGE that reads the keys of its source first, against comparing all rows (decision 0022)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.rowlevel.test_change_plans import changes, joins
from tests.support import change_feed, log
from tests.support.plans import nodes_below
from tests.support.session_settings import session_settings
from tests.support.table_builder import build_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")


@dataclass(frozen=True)
class Keys:
    """Keys of a table and of a source.

    Attributes
    ----------
    types
        Of the table's columns.
    files
        The keys in each file of the table.
    source
        The keys of the source, no two of them equal.
    source_types
        Those of the source, where they differ.
    """

    types: tuple[str, ...]
    files: list[list[tuple[Any, ...]]]
    source: list[tuple[Any, ...]]
    source_types: tuple[str, ...] = ()


def single(sql_type: str, files: list[list[Any]], source: list[Any], other: str = "") -> Keys:
    return Keys(
        (sql_type,),
        [[(key,) for key in keys] for keys in files],
        [(key,) for key in source],
        (other,) if other else (),
    )


KEYS = {
    "string": single(
        "STRING",
        [["", "a", "b"], ["ä", "z", None], ["😀", "x" * 60, "x" * 59 + "y"]],
        ["a", "ä", "x" * 59 + "y", None, "new", "x" * 60 + "z"],
    ),
    "decimal": single(
        "DECIMAL(20,2)",
        [[Decimal("-1.50"), Decimal("0")], [Decimal("2.10"), None], [Decimal("9" * 18)]],
        [Decimal("2.1"), Decimal("9" * 18), Decimal("2.11"), None],
    ),
    "date": single(
        "DATE",
        [[date(1, 1, 1), date(1582, 10, 4)], [date(1970, 1, 1), None], [date(9999, 12, 31)]],
        [date(1582, 10, 4), date(9999, 12, 31), date(2000, 2, 29)],
    ),
    "timestamp": single(
        "TIMESTAMP",
        [
            [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)],
            [datetime(2024, 2, 29, 12, 0, 0, 1), datetime(2024, 2, 29, 12, 0, 0, 2), None],
            [datetime(2024, 2, 29, 12, 0, 0, 999)],
        ],
        [datetime(2024, 2, 29, 12, 0, 0, 2), datetime(1970, 1, 1), datetime(2024, 2, 29, 12)],
    ),
    "double": single(
        "DOUBLE",
        [[-1.0, -0.0], [1.5, NAN, None], [math.inf, 1e300]],
        [0.0, NAN, math.inf, None, -math.inf],
    ),
    "float and double": single("FLOAT", [[0.0, 0.1], [0.5, NAN]], [-0.0, 0.1, 0.5], "DOUBLE"),
    "int and bigint": single(
        "INT",
        [[-(2**31), -1], [0, 1, None], [2**31 - 1]],
        [2**31 - 1, 2**32, -(2**31) - 1, 1, None],
        "BIGINT",
    ),
    "bigint and int": single("BIGINT", [[-(2**31), 1], [2**31, 2**32]], [1, 2, -(2**31)], "INT"),
    "composite": Keys(
        ("INT", "STRING"),
        [[(1, "a"), (1, "b")], [(2, "a"), (None, "b"), (2, None)], [(3, "c")]],
        [(1, "b"), (2, "b"), (2, None), (None, "b"), (3, "c"), (3, "d")],
    ),
}


@dataclass(frozen=True)
class Setup:
    """What a table and a session are like."""

    properties: Mapping[str, str] = field(default_factory=dict)
    vectors: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)


SETUPS = {
    "vectors": Setup(),
    "rewritten": Setup(vectors=False),
    "feed": Setup({"delta.enableChangeDataFeed": "true"}),
    "feed, rewritten": Setup({"delta.enableChangeDataFeed": "true"}, vectors=False),
    "tracked": Setup({"delta.enableRowTracking": "true"}),
    "tracked, rewritten": Setup({"delta.enableRowTracking": "true"}, vectors=False),
    "mapped": Setup({"delta.columnMapping.mode": "name"}),
    "not adaptive": Setup(settings={"spark.sql.adaptive.enabled": "false"}),
    "bounds": Setup(settings={"spark.deltaic.rowLevel.keyPruning.maxBroadcastBytes": "-1"}),
}

#: Each setup with one type of keys; the others are left to `make test-thorough`.
SAMPLED = set(zip(KEYS, SETUPS, strict=True))


def combinations() -> list[object]:
    return [
        pytest.param(keys, setup, marks=[] if (keys, setup) in SAMPLED else [pytest.mark.thorough])
        for keys in KEYS
        for setup in SETUPS
    ]


@pytest.mark.parametrize(("keys", "setup"), combinations())
def test_merge_by_keys_changes_the_rows_that_comparing_all_of_them_finds(
    spark: SparkSession, table: str, keys: str, setup: str
) -> None:
    given, how = KEYS[keys], SETUPS[setup]
    names = [f"k{i}" for i in range(len(given.types))]
    schema = ", ".join(f"{n} {t}" for n, t in zip(names, given.types, strict=True)) + ", v INT"
    rows = [[(*key, 0) for key in file] for file in given.files]
    build_table(spark, table, schema, rows, deletion_vectors=how.vectors, properties=how.properties)
    types = given.source_types or given.types
    columns = ", ".join(f"{n} {t}" for n, t in zip(names, types, strict=True))
    stored = f"{table}_source"
    source = [[(*key, i + 1) for i, key in enumerate(given.source)]]
    build_table(spark, stored, f"{columns}, v INT", source)
    tracked = "tracked" in setup
    before = ids(spark, table) if tracked else {}
    merge = (
        f"MERGE INTO delta.`{table}` t USING delta.`{stored}` s"
        f" ON {' AND '.join(f't.{n} = s.{n}' for n in names)}"
        " WHEN MATCHED AND s.v % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(names)}, v) VALUES ("
        + ", ".join(f"try_cast(s.{n} AS {t})" for n, t in zip(names, given.types, strict=True))
        + ", s.v)"
    )
    with session_settings(spark, dict(how.settings)):
        (plan,) = changes(spark, lambda: spark.sql(merge))
    assert ("LeftSemi" in joins(nodes_below(plan))) == (setup != "bounds")
    expected = merged(given)
    assert Counter(map(repr, map(tuple, rows_of(spark, table)))) == Counter(map(repr, expected))
    if "feed" in setup:
        feed = change_feed.changes(spark, table, startingVersion=1)
        kinds = Counter(row["_change_type"] for row in feed.collect())
        assert kinds == feed_kinds(given)
    if tracked:
        kept = ids(spark, table)
        assert {i: kept.get(i) for i in before if i in kept} == {
            i: before[i] for i in before if i in kept
        }
        assert log.newest(table) == 1


def equal(left: Any, right: Any) -> bool:
    """Say whether SQL takes two values for the same."""
    if left is None or right is None:
        return False
    return bool(left == right) or (repr(left) == repr(right) == "nan")


def match(given: Keys, key: tuple[Any, ...]) -> int | None:
    """Return the value of the source's row with a key of the table."""
    single_precision = given.types == ("FLOAT",)
    for i, other in enumerate(given.source):
        if single_precision and key[0] is not None and key[0] == other[0] == 0.1:
            continue  # the nearest number that a FLOAT can be is another one
        if all(map(equal, key, other)):
            return i + 1
    return None


def merged(given: Keys) -> list[tuple[Any, ...]]:
    rows = [key for file in given.files for key in file]
    left = []
    for key in rows:
        value = match(given, key)
        if value is None or value % 3:
            left.append((*map(as_stored(given), key), value or 0))
    for i, key in enumerate(given.source):
        if not any(match(given, row) == i + 1 for row in rows):
            left.append((*map(as_stored(given), map(fitting(given), key)), i + 1))
    return left


def fitting(given: Keys) -> Any:
    """Return what makes a number that an INT cannot hold null."""
    if given.types != ("INT",):
        return lambda value: value
    return lambda value: value if value is None or -(2**31) <= value < 2**31 else None


def as_stored(given: Keys) -> Any:
    """Return what makes a number what a column of the type gives back."""
    import struct

    def stored(value: Any) -> Any:
        if given.types == ("FLOAT",) and value is not None:
            return struct.unpack("f", struct.pack("f", value))[0]
        if isinstance(value, Decimal):
            return value.quantize(Decimal("0.01"))
        return value

    return stored


def feed_kinds(given: Keys) -> Counter[str]:
    rows = [key for file in given.files for key in file]
    values = [value for key in rows if (value := match(given, key)) is not None]
    updated = sum(1 for value in values if value % 3)
    kinds = Counter(
        update_preimage=updated,
        update_postimage=updated,
        delete=len(values) - updated,
        insert=len(given.source) - len(values),
    )
    return +kinds


def ids(spark: SparkSession, table: str) -> dict[str, int]:
    """Return the row IDs, by the keys of the rows; the older of two that have null for a key."""
    query = f"SELECT *, _metadata.row_id AS _id FROM delta.`{table}` ORDER BY _id DESC"
    return {repr(tuple(row)[:-2]): row["_id"] for row in spark.sql(query).collect()}
