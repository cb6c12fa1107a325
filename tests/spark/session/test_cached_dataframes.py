"""Cached DataFrames that are first executed after their table has changed show it as it is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_names = itertools.count()

Change = Callable[["SparkSession", str], object]


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    """The name of a managed table of the ids 0 to 2, with a view of it."""
    name = f"cached_frames_{next(_names)}"
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT id FROM range(3)")
    spark.sql(f"CREATE VIEW {name}_view AS SELECT id FROM {name}")
    yield name
    spark.catalog.clearCache()
    spark.sql(f"DROP VIEW {name}_view")
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def _location(spark: SparkSession, name: str) -> str:
    return str(spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].location)


def _view_of_frame(spark: SparkSession, name: str) -> DataFrame:
    """Spark drops what is cached of a view that is replaced, so there is a new one each time."""
    view = f"{name}_of_frame_{next(_names)}"
    spark.table(name).createTempView(view)
    return spark.table(view)


def _view_of_name(spark: SparkSession, name: str) -> DataFrame:
    view = f"{name}_of_name_{next(_names)}"
    spark.sql(f"CREATE TEMP VIEW {view} AS SELECT id FROM {name}")
    return spark.table(view)


def _joined(spark: SparkSession, name: str) -> DataFrame:
    return spark.table(name).join(spark.table(f"{name}_view"), "id")


#: Ways to read the ids of a table by its name.
READS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "name": lambda spark, name: spark.table(name),
    "SQL": lambda spark, name: spark.sql(f"SELECT id FROM {name} WHERE id < 1000"),
    "view": lambda spark, name: spark.table(f"{name}_view"),
    "view of a DataFrame": _view_of_frame,
    "temporary view": _view_of_name,
    "subquery": lambda spark, name: spark.sql(
        f"SELECT id FROM range(1000) WHERE id IN (SELECT id FROM {name})"
    ),
    "join with itself": _joined,
    "DeltaTable.toDF": lambda spark, name: DeltaTable.forName(spark, name).toDF(),
}


def _new_rows(spark: SparkSession) -> DataFrame:
    return spark.range(100, 103)


_AS_SELECT = "USING delta AS SELECT id FROM range(100, 103)"

#: Ways to replace the ids 0 to 2 of a table.
REPLACES: dict[str, Change] = {
    "REPLACE TABLE AS SELECT": lambda spark, name: spark.sql(f"REPLACE TABLE {name} {_AS_SELECT}"),
    "CREATE OR REPLACE TABLE AS SELECT": lambda spark, name: spark.sql(
        f"CREATE OR REPLACE TABLE {name} {_AS_SELECT}"
    ),
    "of itself": lambda spark, name: spark.sql(
        f"REPLACE TABLE {name} USING delta AS SELECT id + 100 AS id FROM {name}"
    ),
    "in another session": lambda spark, name: spark.newSession().sql(
        f"REPLACE TABLE {name} {_AS_SELECT}"
    ),
    "saveAsTable": lambda spark, name: (
        _new_rows(spark)
        .write.format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .saveAsTable(name)
    ),
    "writeTo.replace": lambda spark, name: _new_rows(spark).writeTo(name).using("delta").replace(),
    "writeTo.createOrReplace": lambda spark, name: (
        _new_rows(spark).writeTo(name).using("delta").createOrReplace()
    ),
    "DROP and CREATE": lambda spark, name: [
        spark.sql(f"DROP TABLE {name}"),
        spark.sql(f"CREATE TABLE {name} {_AS_SELECT}"),
    ],
    "uncached and overwritten": lambda spark, name: [
        spark.sql("CLEAR CACHE"),
        spark.sql(f"INSERT OVERWRITE {name} SELECT id FROM range(100, 103)"),
    ],
    "save": lambda spark, name: (
        _new_rows(spark).write.format("delta").mode("overwrite").save(_location(spark, name))
    ),
}

#: Ways to leave a table without rows.
EMPTIES: dict[str, Change] = {
    "REPLACE TABLE": lambda spark, name: spark.sql(f"REPLACE TABLE {name} (id BIGINT) USING delta"),
    "CREATE OR REPLACE TABLE": lambda spark, name: spark.sql(
        f"CREATE OR REPLACE TABLE {name} (id BIGINT) USING delta"
    ),
    "builder": lambda spark, name: (
        DeltaTable.createOrReplace(spark).tableName(name).addColumn("id", "BIGINT").execute()
    ),
    "TRUNCATE": lambda spark, name: spark.sql(f"TRUNCATE TABLE {name}"),
}


def own_ids(df: DataFrame) -> list[int]:
    """Run the DataFrame itself, whose plan `cache` has fixed in part."""
    return sorted(row.id for row in df.collect())


@pytest.mark.parametrize("change", [*REPLACES, *EMPTIES])
def test_cached_dataframe_that_is_first_executed_after_its_table_is_replaced_shows_the_new_rows(
    spark: SparkSession, name: str, change: str
) -> None:
    dfs = {read: READS[read](spark, name).cache() for read in READS}
    greatest = spark.table(name).groupBy().max("id").cache()
    (REPLACES | EMPTIES)[change](spark, name)
    ids = [100, 101, 102] if change in REPLACES else []
    assert {read: own_ids(df) for read, df in dfs.items()} == dict.fromkeys(READS, ids)
    assert greatest.collect() == [(max(ids, default=None),)]
    assert own_ids(spark.table(name)) == ids


@pytest.mark.parametrize(
    "cache", ["CACHE TABLE {t}", "CACHE LAZY TABLE {t}", "CACHE LAZY TABLE {t}_c AS TABLE {t}", ""]
)
def test_dataframe_of_a_cached_name_shows_the_rows_that_replace_its_tables(
    spark: SparkSession, name: str, cache: str
) -> None:
    if cache:
        spark.sql(cache.format(t=name))
    else:
        spark.catalog.cacheTable(name)
    cached = f"{name}_c" if " AS " in cache else name
    df = spark.table(cached).cache()
    REPLACES["REPLACE TABLE AS SELECT"](spark, name)
    assert own_ids(df) == own_ids(spark.table(cached)) == [100, 101, 102]


@pytest.mark.parametrize("columns", ["id AS other", "CAST(id AS STRING) AS id"])
def test_cached_dataframe_whose_table_is_replaced_by_one_of_other_columns_is_an_error(
    spark: SparkSession, name: str, columns: str
) -> None:
    dfs = [READS[read](spark, name).cache() for read in ("name", "SQL", "view of a DataFrame")]
    spark.sql(f"REPLACE TABLE {name} USING delta AS SELECT {columns} FROM range(100, 103)")
    for df in dfs:
        with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
            df.collect()
    spark.sql(f"CREATE OR REPLACE TABLE {name} (id BIGINT) USING delta")


def test_cached_dataframe_of_a_table_that_is_renamed_shows_what_is_written_then(
    spark: SparkSession, name: str, table: str
) -> None:
    """Of an external one: the rows stay where they are."""
    external = f"{name}_external"
    spark.sql(f"CREATE TABLE {external} USING delta LOCATION '{table}' AS SELECT id FROM range(3)")
    df = spark.table(external).cache()
    spark.sql(f"ALTER TABLE {external} RENAME TO {external}_renamed")
    spark.sql(f"INSERT OVERWRITE {external}_renamed SELECT id FROM range(100, 103)")
    assert own_ids(df) == [100, 101, 102]
    spark.sql(f"DROP TABLE {external}_renamed")


@contextmanager
def entries_in_hand(spark: SparkSession) -> Iterator[None]:
    """Have nothing in Spark's cache for a while.

    Another thread's write by a name, or its `unpersist`, takes an entry out of the cache while
    Spark plans it again, and then puts it back. So does this, but the entry stays as it was.
    """
    manager = spark._jsparkSession.sharedState().cacheManager()
    fields = manager.getClass().getDeclaredFields()
    [field] = [f for f in fields if f.getName().endswith("cachedData")]
    field.setAccessible(True)
    entries = field.get(manager)
    field.set(manager, entries.take(0))
    yield
    field.set(manager, entries)


def is_cached(df: DataFrame) -> bool:
    return "InMemoryTableScan" in df.select("id")._jdf.queryExecution().toString()


#: The same, and by the path.
READS_TO_REFRESH = {
    **READS,
    "path": lambda spark, name: spark.read.format("delta").load(_location(spark, name)),
}


@pytest.mark.parametrize("is_filled", [False, True])
@pytest.mark.parametrize("read", READS_TO_REFRESH)
def test_cached_rows_that_a_write_did_not_find_are_refreshed_when_they_are_wanted(
    spark: SparkSession, name: str, read: str, is_filled: bool
) -> None:
    df = READS_TO_REFRESH[read](spark, name).cache()
    if is_filled:
        df.count()
    with entries_in_hand(spark):
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert own_ids(df) == [0, 2]
    assert own_ids(df.select("id")) == own_ids(READS_TO_REFRESH[read](spark, name)) == [0, 2]
    assert is_cached(df)
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    assert own_ids(df.select("id")) == [0]
    df.unpersist(blocking=True)
    assert not is_cached(READS_TO_REFRESH[read](spark, name))


def test_name_whose_cached_rows_a_write_did_not_find_shows_it(
    spark: SparkSession, name: str
) -> None:
    spark.sql(f"CACHE TABLE {name}")
    with entries_in_hand(spark):
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert own_ids(spark.table(name)) == [0, 2]
    query = f"SELECT id FROM range(3) WHERE id IN (SELECT max(id) FROM {name})"
    with entries_in_hand(spark):
        spark.sql(f"DELETE FROM {name} WHERE id = 2")
    assert own_ids(spark.sql(query)) == [0]
    assert spark.catalog.isCached(name)


def test_queries_that_find_the_same_stale_rows_at_once_all_get_the_new_ones(
    spark: SparkSession, name: str
) -> None:
    df = spark.table(name).cache()
    others = [spark.table(name).selectExpr(f"id + {n}").cache() for n in range(8)]
    assert [other.count() for other in others] == [3] * 8
    for left in ([0, 2], [0], []):
        with entries_in_hand(spark):
            spark.sql(f"DELETE FROM {name} WHERE id NOT IN ({', '.join(map(str, [*left, -1]))})")
        with ThreadPoolExecutor(6) as pool:
            queries = [pool.submit(own_ids, df.selectExpr("id")) for _ in range(12)]
        assert [query.result() for query in queries] == [left] * 12


def test_cached_rows_that_a_write_did_not_find_and_that_fit_no_more_are_an_error(
    spark: SparkSession, name: str
) -> None:
    df = spark.read.format("delta").load(_location(spark, name)).cache()
    with entries_in_hand(spark):
        spark.sql(f"CREATE OR REPLACE TABLE {name} (other BIGINT) USING delta")
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        df.collect()


def versions_scanned(plan: Any, leaf: int) -> list[str]:
    """Plan one scan of an optimized plan, and return the version that it reads."""
    relation = plan.collectLeaves().apply(leaf)
    scan = relation.table().newScanBuilder(relation.options()).build()
    return re.findall(r" versions? (?:0\.\.)?(\d+)", scan.description())


@pytest.mark.parametrize("path", [False, True])
def test_scans_of_a_cached_dataframe_that_is_planned_after_a_write_read_one_version(
    spark: SparkSession, name: str, path: bool
) -> None:
    other = spark.read.format("delta").load(_location(spark, name)) if path else spark.table(name)
    df = spark.table(name).join(other.withColumnRenamed("id", "other")).cache()
    spark.catalog.clearCache()
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    plan = df._jdf.queryExecution().withCachedData()
    seen = []
    for leaf in (0, 1):
        seen += versions_scanned(plan, leaf)
        spark.sql(f"INSERT INTO {name} VALUES (7)")
    assert seen == ["1", "1"]


@pytest.mark.parametrize("first", ["name", "path"])
def test_a_table_by_name_and_by_path_is_read_at_one_version(
    spark: SparkSession, name: str, first: str
) -> None:
    """A name has the version that was loaded for the query, and a path the newest at its scan."""
    spark.read.format("delta").load(_location(spark, name)).createOrReplaceTempView("of_path")
    left, right = (name, "of_path") if first == "name" else ("of_path", name)
    plan = spark.sql(f"SELECT * FROM {left} JOIN {right}")._jdf.queryExecution().withCachedData()
    seen = []
    for leaf in (0, 1):
        spark.sql(f"INSERT INTO {name} VALUES (7)")
        seen += versions_scanned(plan, leaf)
    assert seen == ["1", "1"]


#: Ways to read the ids of all changes of a table, up to the newest version.
CHANGES: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "CHANGES": lambda spark, name: spark.sql(f"SELECT id FROM {name} CHANGES FROM VERSION 0"),
    "all of CHANGES": lambda spark, name: spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION 0"),
    "CHANGES up to a later version": lambda spark, name: spark.sql(
        f"SELECT id FROM {name} CHANGES FROM VERSION 0 TO VERSION 10"
    ),
    "changes": lambda spark, name: spark.read.option("startingVersion", 0).changes(name),
    "table_changes": lambda spark, name: spark.sql(f"SELECT id FROM table_changes('{name}', 0)"),
    "readChangeFeed of a name": lambda spark, name: (
        spark.read.option("readChangeFeed", True).option("startingVersion", 0).table(name)
    ),
    "readChangeFeed of a path": lambda spark, name: (
        spark.read.format("delta")
        .option("readChangeFeed", True)
        .option("startingVersion", 0)
        .load(_location(spark, name))
    ),
}


@pytest.fixture
def recorded(spark: SparkSession, name: str) -> Iterator[str]:
    """The name of a table of the ids 0 to 2 that records its changes."""
    recorded = f"{name}_recorded"
    spark.sql(
        f"CREATE TABLE {recorded} USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        " AS SELECT id FROM range(3)"
    )
    yield recorded
    spark.sql(f"DROP TABLE {recorded}")


def _append_by_path(spark: SparkSession, name: str) -> None:
    _new_rows(spark).write.format("delta").mode("append").save(_location(spark, name))


def _append_by_name(spark: SparkSession, name: str) -> None:
    spark.sql(f"INSERT INTO {name} SELECT id FROM range(100, 103)")


@pytest.mark.parametrize("append", [_append_by_path, _append_by_name])
@pytest.mark.parametrize("is_filled", [False, True])
@pytest.mark.parametrize("read", CHANGES)
def test_cached_changes_show_a_write_and_stay_cached(
    spark: SparkSession, recorded: str, read: str, is_filled: bool, append: Change
) -> None:
    df = CHANGES[read](spark, recorded).cache()
    if is_filled:
        assert df.count() == 3
    append(spark, recorded)
    assert own_ids(df) == own_ids(df.select("id")) == [0, 1, 2, 100, 101, 102]
    assert is_cached(df)
    df.unpersist(blocking=True)
    assert not is_cached(df)


@pytest.mark.parametrize("read", CHANGES)
def test_cached_changes_that_a_write_did_not_find_are_refreshed_when_they_are_wanted(
    spark: SparkSession, recorded: str, read: str
) -> None:
    df = CHANGES[read](spark, recorded).cache()
    with entries_in_hand(spark):
        _append_by_name(spark, recorded)
    assert own_ids(df) == own_ids(df.select("id")) == [0, 1, 2, 100, 101, 102]
    assert is_cached(df)


def test_cached_changes_up_to_a_version_that_is_there_stay_as_they_are(
    spark: SparkSession, recorded: str
) -> None:
    df = spark.sql(f"SELECT id FROM {recorded} CHANGES FROM VERSION 0 TO VERSION 0").cache()
    _append_by_name(spark, recorded)
    assert own_ids(df) == [0, 1, 2]
    assert is_cached(df)


def test_changes_and_rows_of_one_query_are_of_one_version(
    spark: SparkSession, recorded: str
) -> None:
    df = spark.sql(
        f"SELECT c.id FROM {recorded} CHANGES FROM VERSION 0 AS c"
        f" JOIN {recorded} AS t ON c.id = t.id"
    )
    plan = df._jdf.queryExecution().withCachedData()
    seen = []
    for leaf in (0, 1):
        seen += versions_scanned(plan, leaf)
        _append_by_name(spark, recorded)
    assert len(set(seen)) == 1, seen
