"""The source rows of MERGEs into lineitem: stored as plain Parquet, the same for every engine.

A new row is an old one with another order key: the next of the values that TPC-H leaves free
between the orders of the first load, which its refresh function uses for new orders.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from bench import lineitem
from bench.lab import Lab
from bench.settings import Settings

# The number of rows of each kind in an upsert; it does not depend on the runner's scale.
_ROWS_PER_KIND = 10_000
_ROWS_PER_SCALE = 6_001_215

# The number of random upserts that share no rows.
RANDOM_UPSERTS = 10

# One of a thousand orders is new in a refresh, and another one is deleted.
_REFRESHED = (0.3, 0.301)

_NEW_KEY = "l_orderkey + 8 AS l_orderkey"
_BUCKET = "pmod(xxhash64(l_linenumber, l_orderkey), {buckets})"

UPSERT = (
    "MERGE INTO {table} t USING {source} s "
    "ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
INSERT_NEW = (
    "MERGE INTO {table} t USING {source} s "
    "ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
    "WHEN NOT MATCHED THEN INSERT *"
)
DELETE_OLD = (
    "MERGE INTO {table} t USING {source} s ON t.l_orderkey = s.l_orderkey WHEN MATCHED THEN DELETE"
)


def random_upsert(lab: Lab, number: int = 0) -> DataFrame:
    """Return about 20,000 rows all over the table, half of them new; no two upserts share any."""

    def rows() -> DataFrame:
        bucket = _BUCKET.format(buckets=_buckets(lab.settings))
        source = lineitem.generated_rows(lab)
        old = source.where(f"{bucket} = {2 * number}")
        return _updated(old).unionByName(_new(source.where(f"{bucket} = {2 * number + 1}")))

    return _stored(lab, f"upsert-{number}", rows)


def clustered_upsert(lab: Lab) -> DataFrame:
    """Return about 20,000 rows of one run of order keys, half of them new."""

    def rows() -> DataFrame:
        half = 0.5 / _buckets(lab.settings)
        run = lineitem.keys_between(lab.settings, 0.5 - half, 0.5 + half)
        source = lineitem.generated_rows(lab).where(run)
        return _updated(source).unionByName(_new(source))

    return _stored(lab, "upsert-clustered", rows)


def new_orders(lab: Lab) -> DataFrame:
    """Return the rows of the first refresh function: a run of new orders, 0.1 % of all."""

    def rows() -> DataFrame:
        run = lineitem.keys_between(lab.settings, *_REFRESHED)
        return _new(lineitem.generated_rows(lab).where(run))

    return _stored(lab, "refresh-new", rows)


def old_orders(lab: Lab) -> DataFrame:
    """Return the keys of the second refresh function: a run of old orders, 0.1 % of all."""

    def rows() -> DataFrame:
        run = lineitem.keys_between(lab.settings, *_REFRESHED)
        return lineitem.generated_rows(lab).where(run).select("l_orderkey").distinct()

    return _stored(lab, "refresh-old", rows)


def upserted(rows: DataFrame, source: DataFrame) -> DataFrame:
    """Return the result of an upsert."""
    unchanged = rows.join(source, ["l_orderkey", "l_linenumber"], "left_anti")
    return unchanged.unionByName(source)


def _updated(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(
        *(
            f"{lineitem.UPDATED[column]} AS {column}" if column in lineitem.UPDATED else column
            for column in rows.columns
        )
    )


def _new(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(_NEW_KEY, *(c for c in rows.columns if c != "l_orderkey"))


def _buckets(settings: Settings) -> int:
    rows = _ROWS_PER_SCALE * settings.lineitem_scale_factor
    return max(2 * RANDOM_UPSERTS, round(rows / _ROWS_PER_KIND))


def _stored(lab: Lab, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    def write(path: str) -> None:
        make().coalesce(1).write.parquet(path)

    return lab.spark.read.parquet(lab.prepared(lineitem.table_name(lab.settings, name), write))
