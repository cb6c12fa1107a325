"""What a session has cached of a table is never older than what the session wrote to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import TableWithOracle, build_with_oracle, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_names = itertools.count()


@dataclass(frozen=True)
class Named:
    """A table that has a path, a name in the catalog, and a view over each."""

    target: TableWithOracle
    name: str
    view_of_name: str
    view_of_path: str


@pytest.fixture
def named(spark: SparkSession, table: str) -> Iterator[Named]:
    target = build_with_oracle(spark, table, spark.range(0, 10, 1, 2), deletion_vectors=True)
    name = f"cached_{next(_names)}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table}'")
    spark.sql(f"CREATE VIEW {name}_of_name AS SELECT id FROM {name}")
    spark.sql(f"CREATE VIEW {name}_of_path AS SELECT id FROM {target.sql_name}")
    yield Named(target, name, f"{name}_of_name", f"{name}_of_path")
    spark.catalog.clearCache()
    spark.sql(f"DROP VIEW {name}_of_name")
    spark.sql(f"DROP VIEW {name}_of_path")
    spark.sql(f"DROP TABLE {name}")


def _temp_view(spark: SparkSession, t: Named) -> DataFrame:
    t.target.df().createOrReplaceTempView("view_of_frame")
    return spark.table("view_of_frame")


#: Ways to get at the ids of a table; what they return is cached.
READS: dict[str, Callable[[SparkSession, Named], DataFrame]] = {
    "load": lambda spark, t: t.target.df(),
    "load and filter": lambda spark, t: t.target.df().where("id < 100").select("id"),
    "name": lambda spark, t: spark.table(t.name),
    "path in SQL": lambda spark, t: spark.sql(f"SELECT id FROM {t.target.sql_name}"),
    "view of name": lambda spark, t: spark.table(t.view_of_name),
    "view of path": lambda spark, t: spark.table(t.view_of_path),
    "temporary view": _temp_view,
    "subquery": lambda spark, t: spark.sql(
        f"SELECT id FROM range(100) WHERE id IN (SELECT id FROM {t.target.sql_name})"
    ),
}


def _merge(spark: SparkSession, t: Named) -> None:
    spark.sql(
        f"MERGE INTO {t.target.sql_name} t USING (SELECT 3L AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE"
    )


def _overwrite(spark: SparkSession, t: Named) -> None:
    left = spark.range(10).where("id <> 3")
    left.write.format("delta").mode("overwrite").save(t.target.path)


#: Ways to make the ids 0 to 9 lose the 3.
WRITES: dict[str, Callable[[SparkSession, Named], object]] = {
    "DELETE by path": lambda spark, t: spark.sql(f"DELETE FROM {t.target.sql_name} WHERE id = 3"),
    "DELETE by name": lambda spark, t: spark.sql(f"DELETE FROM {t.name} WHERE id = 3"),
    "DeltaTable.delete": lambda spark, t: DeltaTable.forPath(spark, t.target.path).delete("id = 3"),
    "MERGE by path": _merge,
    "save": _overwrite,
}


def ids(df: DataFrame) -> list[int]:
    # A new query each time: a collected DataFrame keeps its plan, here as with any table.
    return sorted(row.id for row in df.select("id").collect())


def is_cached(df: DataFrame) -> bool:
    return "InMemoryTableScan" in df.select("id")._jdf.queryExecution().toString()


@pytest.mark.parametrize("write", ["DELETE by path", "DELETE by name"])
@pytest.mark.parametrize("read", READS)
def test_cached_data_is_that_of_the_new_version_through_any_read_api(
    spark: SparkSession, named: Named, read: str, write: str
):
    df = READS[read](spark, named).cache()
    assert ids(df) == list(range(10))
    WRITES[write](spark, named)
    assert ids(df) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ids(READS[read](spark, named)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert is_cached(READS[read](spark, named))


@pytest.mark.parametrize("write", WRITES)
def test_cached_data_is_that_of_the_new_version_after_any_write_api(
    spark: SparkSession, named: Named, write: str
):
    by_path = READS["load"](spark, named).cache()
    by_name = READS["view of name"](spark, named).cache()
    assert ids(by_path) == ids(by_name) == list(range(10))
    WRITES[write](spark, named)
    assert ids(by_path) == ids(by_name) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


#: Further ways to read a table, for DataFrames that are cached before they are executed.
UNEXECUTED: dict[str, Callable[[SparkSession, Named], DataFrame]] = {
    **READS,
    "name and filter": lambda spark, t: spark.table(t.name).where("id < 100"),
    "name in SQL": lambda spark, t: spark.sql(f"SELECT id FROM {t.name}"),
    "join": lambda spark, t: spark.table(t.name).join(spark.range(100), "id"),
    "join with itself": lambda spark, t: spark.table(t.name).join(
        spark.table(t.view_of_path), "id"
    ),
}

#: Further ways to make the ids 0 to 9 lose the 3, or all.
ALL_WRITES: dict[str, Callable[[SparkSession, Named], object]] = {
    **WRITES,
    "saveAsTable": lambda spark, t: (
        spark.range(10).where("id <> 3").write.format("delta").mode("overwrite").saveAsTable(t.name)
    ),
    "INSERT OVERWRITE": lambda spark, t: spark.sql(
        f"INSERT OVERWRITE {t.name} SELECT id FROM range(10) WHERE id <> 3"
    ),
    "in another session": lambda spark, t: spark.newSession().sql(
        f"DELETE FROM {t.target.sql_name} WHERE id = 3"
    ),
    "two writes": lambda spark, t: [
        spark.sql(f"DELETE FROM {name} WHERE id = {gone}")
        for name, gone in ((t.name, 3), (t.target.sql_name, 4))
    ],
    "TRUNCATE": lambda spark, t: spark.sql(f"TRUNCATE TABLE {t.name}"),
    "a new column": lambda spark, t: [
        spark.sql(f"ALTER TABLE {t.name} ADD COLUMNS (late INT)"),
        spark.sql(f"DELETE FROM {t.name} WHERE id = 3"),
    ],
}


def left_after(write: str) -> list[int]:
    gone = {"TRUNCATE": range(10), "two writes": (3, 4)}.get(write, (3,))
    return [id for id in range(10) if id not in gone]


def own_ids(df: DataFrame) -> list[int]:
    """Run the DataFrame itself, whose plan `cache` has fixed in part."""
    return sorted(row.id for row in df.collect())


@pytest.mark.parametrize("read", UNEXECUTED)
def test_dataframe_that_is_first_executed_after_a_write_shows_it(
    spark: SparkSession, named: Named, read: str
) -> None:
    df = UNEXECUTED[read](spark, named).cache()
    WRITES["DELETE by name"](spark, named)
    assert own_ids(df) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ids(UNEXECUTED[read](spark, named)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert is_cached(UNEXECUTED[read](spark, named))
    df.unpersist(blocking=True)
    assert not is_cached(UNEXECUTED[read](spark, named))


@pytest.mark.parametrize("write", ALL_WRITES)
def test_whatever_writes_dataframes_that_are_first_executed_then_show_it(
    spark: SparkSession, named: Named, write: str
) -> None:
    dfs = [
        READS[read](spark, named).cache() for read in ("name", "view of name", "subquery", "load")
    ]
    changes = spark.table(named.name).groupBy().count().cache()
    ALL_WRITES[write](spark, named)
    assert [own_ids(df) for df in dfs] == [left_after(write)] * 4
    assert changes.collect() == [(len(left_after(write)),)]


@pytest.mark.parametrize("statement", ["CACHE LAZY TABLE {t}", "CACHE LAZY TABLE c AS TABLE {t}"])
def test_table_cached_lazily_shows_a_write_before_it_is_filled(
    spark: SparkSession, named: Named, statement: str
) -> None:
    spark.sql(statement.format(t=named.name))
    cached = "c" if " c " in statement else named.name
    df = spark.table(cached)
    WRITES["DELETE by path"](spark, named)
    assert own_ids(df) == ids(spark.table(cached)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    spark.sql(f"UNCACHE TABLE {cached}")


def test_cached_dataframe_whose_column_is_gone_is_an_error_and_shows_no_older_row(
    spark: SparkSession, table: str
) -> None:
    name = f"cached_{next(_names)}"
    spark.sql(
        f"CREATE TABLE {name} (id INT, gone INT) USING delta LOCATION '{table}'"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
    df = spark.table(name).select("gone").cache()
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        df.collect()
    spark.catalog.clearCache()
    spark.sql(f"DROP TABLE {name}")


def test_cached_changes_up_to_the_newest_version_show_a_write(
    spark: SparkSession, table: str
) -> None:
    spark.range(3).write.format("delta").option("delta.enableChangeDataFeed", "true").save(table)
    df = spark.sql(f"SELECT id FROM table_changes_by_path('{table}', 0)").cache()
    assert own_ids(df) == [0, 1, 2]
    up_to_0 = spark.sql(f"SELECT id FROM table_changes_by_path('{table}', 0, 0)").cache()
    spark.range(3, 5).write.format("delta").mode("append").save(table)
    assert ids(df) == [0, 1, 2, 3, 4]
    assert ids(up_to_0) == [0, 1, 2]
    spark.catalog.clearCache()


@pytest.mark.parametrize("write", ["DELETE by path", "save"])
def test_table_cached_by_statement_shows_a_write_by_path(
    spark: SparkSession, named: Named, write: str
):
    spark.sql(f"CACHE TABLE {named.name}")
    WRITES[write](spark, named)
    assert ids(spark.table(named.name)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert spark.catalog.isCached(named.name)


def test_dataframe_from_a_path_stays_cached_over_writes_and_can_be_let_go(
    spark: SparkSession, named: Named
):
    df = named.target.df().cache()
    for gone in (3, 4, 5):
        named.target.delete(f"id = {gone}")
        assert df.count() == named.target.df().count() == 10 - (gone - 2)
        assert is_cached(df)
        assert is_cached(named.target.df())
    df.unpersist(blocking=True)
    assert not is_cached(df)
    assert not is_cached(named.target.df())


def test_cached_older_version_stays_cached_as_it_was(spark: SparkSession, named: Named):
    named.target.delete("id = 0")
    by_option = spark.read.format("delta").option("versionAsOf", 0).load(named.target.path).cache()
    by_name = spark.sql(f"SELECT id FROM {named.name} VERSION AS OF 1").cache()
    by_option.count()
    by_name.count()
    named.target.delete("id = 3")
    assert ids(by_option) == list(range(10))
    assert ids(by_name) == list(range(1, 10))
    assert is_cached(by_option)
    assert is_cached(by_name)
    assert ids(named.target.df()) == [1, 2, 4, 5, 6, 7, 8, 9]


def test_cached_data_that_no_longer_fits_the_columns_is_dropped(spark: SparkSession, named: Named):
    by_path = named.target.df().cache()
    by_path.count()
    spark.sql(f"CACHE TABLE {named.name}")
    new = spark.range(3).selectExpr("id AS other")
    new.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        named.target.path
    )
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        by_path.count()
    assert named.target.df().columns == ["other"]
    assert named.target.df().count() == 3
    assert spark.table(named.name).columns == ["other"]
    assert spark.table(named.name).count() == 3


def test_table_written_again_at_the_same_path_is_not_answered_from_cache(
    spark: SparkSession, table: str
):
    build_with_oracle(spark, table, spark.range(5)).df().cache().count()
    hadoop_path = spark._jvm.org.apache.hadoop.fs.Path(table)  # type: ignore[union-attr]
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    hadoop_path.getFileSystem(configuration).delete(hadoop_path, True)
    try:
        assert build_with_oracle(spark, table, spark.range(7)).df().count() == 7
    finally:
        spark.catalog.clearCache()


def _commit_of_another_process(path: str) -> None:
    """Remove the file of the ids 0 to 4 from the table, as another process might."""
    low = next(f for f in log.active_files(path) if log.statistics(f)["minValues"]["id"] == 0)
    gone = {"path": low["path"], "deletionTimestamp": 1, "dataChange": True}
    log.write_commit(path, log.newest(path) + 1, {"remove": gone})


@pytest.mark.parametrize("read", sorted(READS.keys() - {"name"}))
def test_dataframe_made_after_a_commit_of_another_process_is_not_answered_from_the_cache(
    spark: SparkSession, named: Named, read: str
):
    df = READS[read](spark, named).cache()
    assert ids(df) == list(range(10))
    _commit_of_another_process(named.target.path)
    assert ids(READS[read](spark, named)) == [5, 6, 7, 8, 9]
    assert not is_cached(READS[read](spark, named))


def test_name_whose_table_is_cached_means_what_is_cached_until_it_is_refreshed(
    spark: SparkSession, named: Named
):
    """That is Spark's own rule: it looks a name up among the cached tables first."""
    spark.table(named.name).cache().count()
    _commit_of_another_process(named.target.path)
    assert ids(spark.table(named.name)) == list(range(10))
    assert ids(named.target.df()) == [5, 6, 7, 8, 9]
    spark.sql(f"REFRESH TABLE {named.name}")
    assert ids(spark.table(named.name)) == [5, 6, 7, 8, 9]
    assert is_cached(spark.table(named.name))


def test_changes_by_name_are_of_the_newest_version_whatever_is_cached(
    spark: SparkSession, named: Named
):
    spark.table(named.name).cache().count()
    _commit_of_another_process(named.target.path)
    DeltaTable.forName(spark, named.name).delete("id < 6")
    assert ids(named.target.df()) == [6, 7, 8, 9]
    assert ids(spark.table(named.name)) == [6, 7, 8, 9]


def test_dataframe_cached_before_a_commit_of_another_process_stays_until_one_of_this_process(
    spark: SparkSession, named: Named
):
    df = named.target.df().cache()
    df.count()
    _commit_of_another_process(named.target.path)
    assert ids(df) == list(range(10))
    assert is_cached(df)
    named.target.delete("id = 7")
    assert ids(df) == [5, 6, 8, 9]
    assert is_cached(df)
    assert is_cached(named.target.df())


def test_other_tables_stay_cached(spark: SparkSession, named: Named, tmp_path_factory):
    other = build_with_oracle(spark, str(tmp_path_factory.mktemp("other") / "t"), spark.range(4))
    df = other.df().cache()
    df.count()
    named.target.delete("id = 1")
    assert is_cached(df)
    assert spark.sparkContext._jsc.sc().getRDDStorageInfo(), "its rows are still held"
    df.unpersist(blocking=True)


def test_merge_takes_its_source_from_the_cache(spark: SparkSession, named: Named, table: str):
    source = named.target.df().selectExpr("id", "uuid() AS drawn").cache()
    drawn = source.collect()
    target = f"{table}-target"
    source.limit(0).write.format("delta").save(target)
    merge = DeltaTable.forPath(spark, target).merge(source, "false")
    merge.whenNotMatchedInsertAll().execute()
    assert rows_of(spark, target) == in_order(map(tuple, drawn))
