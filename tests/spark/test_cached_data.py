"""What a session has cached of a table is never older than what the session wrote to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from deltaic import DeltaTable
from tests.support import log
from tests.support.table_builder import TwinTable, build_twin, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_names = itertools.count()


@dataclass(frozen=True)
class Named:
    """A table that has a path, a name in the catalog, and a view over each."""

    twin: TwinTable
    name: str
    view_of_name: str
    view_of_path: str


@pytest.fixture
def named(spark: SparkSession, table: str) -> Iterator[Named]:
    twin = build_twin(spark, table, spark.range(0, 10, 1, 2), deletion_vectors=True)
    name = f"cached_{next(_names)}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table}'")
    spark.sql(f"CREATE VIEW {name}_of_name AS SELECT id FROM {name}")
    spark.sql(f"CREATE VIEW {name}_of_path AS SELECT id FROM {twin.sql_name}")
    yield Named(twin, name, f"{name}_of_name", f"{name}_of_path")
    spark.catalog.clearCache()
    spark.sql(f"DROP VIEW {name}_of_name")
    spark.sql(f"DROP VIEW {name}_of_path")
    spark.sql(f"DROP TABLE {name}")


def _temp_view(spark: SparkSession, t: Named) -> DataFrame:
    t.twin.frame().createOrReplaceTempView("view_of_frame")
    return spark.table("view_of_frame")


#: Ways to get at the ids of a table; what they return is cached.
READS: dict[str, Callable[[SparkSession, Named], DataFrame]] = {
    "load": lambda spark, t: t.twin.frame(),
    "load and filter": lambda spark, t: t.twin.frame().where("id < 100").select("id"),
    "name": lambda spark, t: spark.table(t.name),
    "path in SQL": lambda spark, t: spark.sql(f"SELECT id FROM {t.twin.sql_name}"),
    "view of name": lambda spark, t: spark.table(t.view_of_name),
    "view of path": lambda spark, t: spark.table(t.view_of_path),
    "temporary view": _temp_view,
    "subquery": lambda spark, t: spark.sql(
        f"SELECT id FROM range(100) WHERE id IN (SELECT id FROM {t.twin.sql_name})"
    ),
}


def _merge(spark: SparkSession, t: Named) -> None:
    spark.sql(
        f"MERGE INTO {t.twin.sql_name} t USING (SELECT 3L AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE"
    )


def _overwrite(spark: SparkSession, t: Named) -> None:
    left = spark.range(10).where("id <> 3")
    left.write.format("delta").mode("overwrite").save(t.twin.path)


#: Ways to make the ids 0 to 9 lose the 3.
WRITES: dict[str, Callable[[SparkSession, Named], object]] = {
    "DELETE by path": lambda spark, t: spark.sql(f"DELETE FROM {t.twin.sql_name} WHERE id = 3"),
    "DELETE by name": lambda spark, t: spark.sql(f"DELETE FROM {t.name} WHERE id = 3"),
    "DeltaTable.delete": lambda spark, t: DeltaTable.forPath(spark, t.twin.path).delete("id = 3"),
    "MERGE by path": _merge,
    "save": _overwrite,
}


def ids(frame: DataFrame) -> list[int]:
    # A new query each time: a frame that was collected keeps its plan, here as with any table.
    return sorted(row.id for row in frame.select("id").collect())


def is_cached(frame: DataFrame) -> bool:
    return "InMemoryTableScan" in frame.select("id")._jdf.queryExecution().toString()


@pytest.mark.parametrize("write", ["DELETE by path", "DELETE by name"])
@pytest.mark.parametrize("read", READS)
def test_whatever_way_it_is_read_cached_data_is_that_of_the_new_version(
    spark: SparkSession, named: Named, read: str, write: str
):
    frame = READS[read](spark, named).cache()
    assert ids(frame) == list(range(10))
    WRITES[write](spark, named)
    assert ids(frame) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ids(READS[read](spark, named)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert is_cached(READS[read](spark, named))


@pytest.mark.parametrize("write", WRITES)
def test_whatever_way_it_is_written_cached_data_is_that_of_the_new_version(
    spark: SparkSession, named: Named, write: str
):
    by_path = READS["load"](spark, named).cache()
    by_name = READS["view of name"](spark, named).cache()
    assert ids(by_path) == ids(by_name) == list(range(10))
    WRITES[write](spark, named)
    assert ids(by_path) == ids(by_name) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


#: Further ways to read a table, for frames that are cached before they are executed.
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
        f"DELETE FROM {t.twin.sql_name} WHERE id = 3"
    ),
    "two writes": lambda spark, t: [
        spark.sql(f"DELETE FROM {name} WHERE id = {gone}")
        for name, gone in ((t.name, 3), (t.twin.sql_name, 4))
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


def own_ids(frame: DataFrame) -> list[int]:
    """Run the frame itself, whose plan `cache` has settled in part."""
    return sorted(row.id for row in frame.collect())


@pytest.mark.parametrize("read", UNEXECUTED)
def test_frame_that_is_first_executed_after_a_write_shows_it(
    spark: SparkSession, named: Named, read: str
) -> None:
    frame = UNEXECUTED[read](spark, named).cache()
    WRITES["DELETE by name"](spark, named)
    assert own_ids(frame) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert ids(UNEXECUTED[read](spark, named)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert is_cached(UNEXECUTED[read](spark, named))
    frame.unpersist(blocking=True)
    assert not is_cached(UNEXECUTED[read](spark, named))


@pytest.mark.parametrize("write", ALL_WRITES)
def test_whatever_writes_frames_that_are_first_executed_then_show_it(
    spark: SparkSession, named: Named, write: str
) -> None:
    frames = [
        READS[read](spark, named).cache() for read in ("name", "view of name", "subquery", "load")
    ]
    changes = spark.table(named.name).groupBy().count().cache()
    ALL_WRITES[write](spark, named)
    assert [own_ids(frame) for frame in frames] == [left_after(write)] * 4
    assert changes.collect() == [(len(left_after(write)),)]


@pytest.mark.parametrize("statement", ["CACHE LAZY TABLE {t}", "CACHE LAZY TABLE c AS TABLE {t}"])
def test_table_cached_lazily_shows_a_write_before_it_is_filled(
    spark: SparkSession, named: Named, statement: str
) -> None:
    spark.sql(statement.format(t=named.name))
    cached = "c" if " c " in statement else named.name
    frame = spark.table(cached)
    WRITES["DELETE by path"](spark, named)
    assert own_ids(frame) == ids(spark.table(cached)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    spark.sql(f"UNCACHE TABLE {cached}")


def test_cached_frame_whose_column_is_gone_is_an_error_and_shows_no_older_row(
    spark: SparkSession, table: str
) -> None:
    name = f"cached_{next(_names)}"
    spark.sql(
        f"CREATE TABLE {name} (id INT, gone INT) USING delta LOCATION '{table}'"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
    frame = spark.table(name).select("gone").cache()
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        frame.collect()
    spark.catalog.clearCache()
    spark.sql(f"DROP TABLE {name}")


def test_cached_changes_up_to_the_newest_version_show_a_write(
    spark: SparkSession, table: str
) -> None:
    spark.range(3).write.format("delta").option("delta.enableChangeDataFeed", "true").save(table)
    frame = spark.sql(f"SELECT id FROM table_changes_by_path('{table}', 0)").cache()
    assert own_ids(frame) == [0, 1, 2]
    up_to_0 = spark.sql(f"SELECT id FROM table_changes_by_path('{table}', 0, 0)").cache()
    spark.range(3, 5).write.format("delta").mode("append").save(table)
    assert ids(frame) == [0, 1, 2, 3, 4]
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


def test_frame_from_a_path_stays_cached_over_writes_and_can_be_let_go(
    spark: SparkSession, named: Named
):
    frame = named.twin.frame().cache()
    for gone in (3, 4, 5):
        named.twin.delete(f"id = {gone}")
        assert frame.count() == named.twin.frame().count() == 10 - (gone - 2)
        assert is_cached(frame)
        assert is_cached(named.twin.frame())
    frame.unpersist(blocking=True)
    assert not is_cached(frame)
    assert not is_cached(named.twin.frame())


def test_cached_older_version_stays_cached_as_it_was(spark: SparkSession, named: Named):
    named.twin.delete("id = 0")
    by_option = spark.read.format("delta").option("versionAsOf", 0).load(named.twin.path).cache()
    by_name = spark.sql(f"SELECT id FROM {named.name} VERSION AS OF 1").cache()
    by_option.count()
    by_name.count()
    named.twin.delete("id = 3")
    assert ids(by_option) == list(range(10))
    assert ids(by_name) == list(range(1, 10))
    assert is_cached(by_option)
    assert is_cached(by_name)
    assert ids(named.twin.frame()) == [1, 2, 4, 5, 6, 7, 8, 9]


def test_cached_data_that_no_longer_fits_the_columns_is_dropped(spark: SparkSession, named: Named):
    by_path = named.twin.frame().cache()
    by_path.count()
    spark.sql(f"CACHE TABLE {named.name}")
    new = spark.range(3).selectExpr("id AS other")
    new.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        named.twin.path
    )
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_CHANGED"):
        by_path.count()
    assert named.twin.frame().columns == ["other"]
    assert named.twin.frame().count() == 3
    assert spark.table(named.name).columns == ["other"]
    assert spark.table(named.name).count() == 3


def test_table_written_anew_at_the_same_path_is_not_answered_from_cache(
    spark: SparkSession, table: str
):
    build_twin(spark, table, spark.range(5)).frame().cache().count()
    hadoop_path = spark._jvm.org.apache.hadoop.fs.Path(table)  # type: ignore[union-attr]
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    hadoop_path.getFileSystem(configuration).delete(hadoop_path, True)
    try:
        assert build_twin(spark, table, spark.range(7)).frame().count() == 7
    finally:
        spark.catalog.clearCache()


def _commit_of_another_process(path: str) -> None:
    """Take the file of the ids 0 to 4 out of the table, as whoever shares the directory might."""
    low = next(f for f in log.active_files(path) if log.statistics(f)["minValues"]["id"] == 0)
    gone = {"path": low["path"], "deletionTimestamp": 1, "dataChange": True}
    log.write_commit(path, log.newest(path) + 1, {"remove": gone})


@pytest.mark.parametrize("read", sorted(READS.keys() - {"name"}))
def test_frame_made_after_a_commit_of_another_process_is_not_answered_from_the_cache(
    spark: SparkSession, named: Named, read: str
):
    frame = READS[read](spark, named).cache()
    assert ids(frame) == list(range(10))
    _commit_of_another_process(named.twin.path)
    assert ids(READS[read](spark, named)) == [5, 6, 7, 8, 9]
    assert not is_cached(READS[read](spark, named))


def test_name_whose_table_is_cached_means_what_is_cached_until_it_is_refreshed(
    spark: SparkSession, named: Named
):
    """That is Spark's own rule: it looks a name up among the cached tables first."""
    spark.table(named.name).cache().count()
    _commit_of_another_process(named.twin.path)
    assert ids(spark.table(named.name)) == list(range(10))
    assert ids(named.twin.frame()) == [5, 6, 7, 8, 9]
    spark.sql(f"REFRESH TABLE {named.name}")
    assert ids(spark.table(named.name)) == [5, 6, 7, 8, 9]
    assert is_cached(spark.table(named.name))


def test_changes_by_name_are_of_the_newest_version_whatever_is_cached(
    spark: SparkSession, named: Named
):
    spark.table(named.name).cache().count()
    _commit_of_another_process(named.twin.path)
    DeltaTable.forName(spark, named.name).delete("id < 6")
    assert ids(named.twin.frame()) == [6, 7, 8, 9]
    assert ids(spark.table(named.name)) == [6, 7, 8, 9]


def test_frame_cached_before_a_commit_of_another_process_stays_until_one_of_this_process(
    spark: SparkSession, named: Named
):
    frame = named.twin.frame().cache()
    frame.count()
    _commit_of_another_process(named.twin.path)
    assert ids(frame) == list(range(10))
    assert is_cached(frame)
    named.twin.delete("id = 7")
    assert ids(frame) == [5, 6, 8, 9]
    assert is_cached(frame)
    assert is_cached(named.twin.frame())


def test_other_tables_stay_cached(spark: SparkSession, named: Named, tmp_path_factory):
    other = build_twin(spark, str(tmp_path_factory.mktemp("other") / "t"), spark.range(4))
    frame = other.frame().cache()
    frame.count()
    named.twin.delete("id = 1")
    assert is_cached(frame)
    assert spark.sparkContext._jsc.sc().getRDDStorageInfo(), "its rows are still held"
    frame.unpersist(blocking=True)


def test_merge_takes_its_source_from_the_cache(spark: SparkSession, named: Named, table: str):
    source = named.twin.frame().selectExpr("id", "uuid() AS drawn").cache()
    drawn = source.collect()
    target = f"{table}-target"
    source.limit(0).write.format("delta").save(target)
    merge = DeltaTable.forPath(spark, target).merge(source, "false")
    merge.whenNotMatchedInsertAll().execute()
    assert rows_of(spark, target) == in_order(map(tuple, drawn))
