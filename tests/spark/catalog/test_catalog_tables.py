"""Tables by name: CREATE, CTAS, INSERT and saveAsTable through the session catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest
from pyspark.sql import functions as F

from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.databases import own_database
from tests.support.session_settings import session_settings
from tests.support.table_builder import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATABASE = "catalog_tests"


@pytest.fixture(autouse=True)
def database(spark: SparkSession) -> Iterator[None]:
    """An empty database, which is the current one."""
    with own_database(spark, DATABASE):
        yield


def location(spark: SparkSession, name: str) -> str:
    """Return the location of a table in the catalog."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    (uri,) = [row.data_type for row in rows if row.col_name == "Location"]
    return unquote(urlparse(uri).path)


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr("id", "id % 3 AS p")


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=str)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [("append", range(10)), ("overwrite", range(5, 10)), ("ignore", range(5)), ("error", None)],
)
def test_save_as_table_creates_a_table_and_treats_an_old_one_by_mode(
    spark: SparkSession, mode: str, expected: range | None, partition_by: list[str]
):
    def save(start: int) -> None:
        writer = rows(spark, start, start + 5).write.format("delta").mode(mode)
        writer.partitionBy(*partition_by).saveAsTable("t")

    save(0)
    assert ids(spark, "t") == [0, 1, 2, 3, 4]
    assert log.metadata(location(spark, "t"))["partitionColumns"] == partition_by
    if expected is None:
        with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            save(5)
    else:
        save(5)
    assert ids(spark, "t") == list(expected or range(5))


def test_save_as_table_overwrite_replaces_columns(spark: SparkSession):
    rows(spark, 0, 5).write.format("delta").saveAsTable("t")
    writer = spark.range(2).selectExpr("id AS only").write.format("delta").mode("overwrite")
    with pytest.raises(Exception, match="DELTAIC_SCHEMA_MISMATCH"):
        writer.saveAsTable("t")
    writer.option("overwriteSchema", "true").saveAsTable("t")
    assert spark.table("t").columns == ["only"]
    path = location(spark, "t")
    assert log.versions(path) == [0, 1]
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).columns == ["id", "p"]


def test_save_as_table_with_a_path_makes_an_external_table(spark: SparkSession, table: str):
    rows(spark, 0, 5).write.format("delta").option("path", table).saveAsTable("t")
    assert location(spark, "t") == table
    spark.sql("DROP TABLE t")
    assert spark.read.format("delta").load(table).count() == 5


def tables_of_catalog(spark: SparkSession) -> list[str]:
    """Return the names that SHOW TABLES lists, without temporary views of other tests."""
    listed = spark.sql("SHOW TABLES").collect()
    return [row.tableName for row in listed if not row.isTemporary]


def test_create_table_sets_columns_partitions_properties_and_comment(
    spark: SparkSession, table: str
):
    spark.sql(
        f"CREATE TABLE t (id BIGINT NOT NULL COMMENT 'the id', p STRING) USING delta"
        f" PARTITIONED BY (p) LOCATION '{table}' COMMENT 'what it is for'"
        " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'owner.team' = 'x')"
    )
    metadata = log.metadata(table)
    assert metadata["partitionColumns"] == ["p"]
    assert metadata["description"] == "what it is for"
    assert metadata["configuration"] == {
        "delta.enableDeletionVectors": "true",
        "owner.team": "x",
    }
    (id_field, _) = json.loads(metadata["schemaString"])["fields"]
    assert (id_field["nullable"], id_field["metadata"]) == (False, {"comment": "the id"})
    info = log.commit_info(table)
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"]["isManaged"] == "false"
    assert json.loads(info["operationParameters"]["partitionBy"]) == ["p"]
    assert info["operationParameters"]["description"] == "what it is for"
    assert spark.table("t").count() == 0


def test_managed_table_is_stored_in_its_database_and_drop_removes_it(spark: SparkSession):
    spark.sql("CREATE TABLE t (id BIGINT) USING delta")
    spark.sql("INSERT INTO t VALUES (1)")
    path = location(spark, "t")
    assert Path(path).parent.name == f"{DATABASE}.db"
    assert log.commit_info(path, 0)["operationParameters"]["isManaged"] == "true"
    spark.sql("DROP TABLE t")
    assert not Path(path).exists()
    spark.sql("CREATE TABLE t (other INT) USING delta")
    assert spark.table("t").columns == ["other"]


def test_create_table_at_a_table_takes_it_over_without_a_commit(spark: SparkSession, table: str):
    rows(spark, 0, 5).write.format("delta").partitionBy("p").save(table)
    before = log.contents(table)
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table}'")
    assert ids(spark, "t") == list(range(5))
    assert log.contents(table) == before


def test_catalog_api_takes_over_a_table_at_a_path(spark: SparkSession, table: str):
    rows(spark, 0, 5).write.format("delta").save(table)
    before = log.contents(table)
    assert spark.catalog.createTable("t", path=table, source="delta").count() == 5
    assert (location(spark, "t"), log.contents(table)) == (table, before)


@pytest.mark.parametrize(
    "rest", ["(id INT) USING delta {at}", "USING delta {at} AS SELECT 1 AS id"]
)
def test_table_named_by_its_path_cannot_be_elsewhere(
    spark: SparkSession, table: str, tmp_path: Path, rest: str
):
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(InvalidArgumentError, match=r"PATH_AND_LOCATION_DIFFER.*elsewhere"):
        spark.sql(f"CREATE TABLE delta.`{table}` " + rest.format(at=f"LOCATION '{elsewhere}'"))
    assert not Path(table).exists() and not elsewhere.exists()
    at = f"LOCATION 'file://{table}/'"
    spark.sql(f"CREATE TABLE delta.`{table}` " + rest.format(at=at))
    assert log.versions(table) == [0]


def test_create_table_that_contradicts_the_table_there_is_refused(spark: SparkSession, table: str):
    columns = "id BIGINT, s VARCHAR(9), st STRUCT<a: INT>"
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
    for other in ("other INT", columns.replace("9", "3"), columns.replace("INT>", "INT NOT NULL>")):
        with pytest.raises(Exception, match="DELTAIC_CREATE_MISMATCH"):
            spark.sql(f"CREATE TABLE t ({other}) USING delta LOCATION '{table}'")
    assert not spark.catalog.tableExists("t")


def test_create_table_as_it_was_created_is_no_contradiction(spark: SparkSession, table: str):
    inner = "STRUCT<A: INT COMMENT 'n', t: VARCHAR(3) NOT NULL>"
    columns = f"(Id BIGINT COMMENT 'c', s VARCHAR(9), st {inner})"
    spark.sql(f"CREATE TABLE t {columns} USING delta LOCATION '{table}'")
    spark.sql("DROP TABLE t")
    spark.sql(f"CREATE TABLE t {columns.lower()} USING delta LOCATION '{table}'")
    assert spark.table("t").columns == ["Id", "s", "st"]
    assert log.versions(table) == [0]


@pytest.mark.parametrize(
    ("name", "condition"),
    [("`my-table`", "INVALID_SCHEMA_OR_RELATION_NAME"), ("no_such_db.t", "SCHEMA_NOT_FOUND")],
)
@pytest.mark.parametrize("rest", ["(id BIGINT) USING delta {at}", "USING delta {at} AS SELECT 1 n"])
def test_table_that_the_catalog_cannot_list_is_not_made(
    spark: SparkSession, table: str, name: str, condition: str, rest: str
):
    with pytest.raises(Exception, match=condition):
        spark.sql(f"CREATE TABLE {name} " + rest.format(at=f"LOCATION '{table}'"))
    assert not Path(table).exists()


@pytest.mark.parametrize(
    "create",
    [
        "CREATE TABLE t USING delta LOCATION '{table}' AS SELECT 1L AS id, 2L AS p",
        "CREATE TABLE delta.`{table}` USING delta AS SELECT 1L AS id, 2L AS p",
    ],
)
def test_ctas_at_a_location_with_a_table_is_refused(spark: SparkSession, table: str, create: str):
    rows(spark, 0, 5).write.format("delta").save(table)
    before = log.contents(table)
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        spark.sql(create.format(table=table))
    assert log.contents(table) == before
    assert not spark.catalog.tableExists("t")


def test_create_table_that_exists_is_refused_or_with_if_not_exists_left_alone(
    spark: SparkSession,
):
    spark.sql("CREATE TABLE t (id BIGINT) USING delta")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE t (other BIGINT) USING delta")
    spark.sql("CREATE TABLE IF NOT EXISTS t (other BIGINT) USING delta")
    assert spark.table("t").columns == ["id"]


@pytest.mark.parametrize("clause", ["", "PARTITIONED BY (p)"])
def test_ctas_makes_one_commit_with_definition_and_rows(spark: SparkSession, clause: str):
    spark.sql(
        f"CREATE TABLE t USING delta {clause} COMMENT 'c' TBLPROPERTIES ('a' = 'b')"
        " AS SELECT id, id % 3 AS p FROM range(10)"
    )
    path = location(spark, "t")
    assert log.versions(path) == [0]
    assert log.commit_info(path)["operation"] == "CREATE TABLE AS SELECT"
    assert log.commit_info(path)["operationMetrics"]["numOutputRows"] == "10"
    assert log.metadata(path)["configuration"] == {"a": "b"}
    assert log.metadata(path)["description"] == "c"
    assert ids(spark, "t") == list(range(10))


def test_ctas_without_rows_makes_a_table(spark: SparkSession):
    spark.sql("CREATE TABLE t USING delta AS SELECT id FROM range(10) WHERE false")
    assert (spark.table("t").columns, ids(spark, "t")) == (["id"], [])


@pytest.mark.parametrize("exists", [False, True])
def test_create_or_replace_as_select_leaves_only_the_new_definition_and_rows(
    spark: SparkSession, exists: bool
):
    if exists:
        spark.sql(
            "CREATE TABLE t USING delta PARTITIONED BY (p) TBLPROPERTIES ('old' = '1')"
            " AS SELECT id, id % 3 AS p FROM range(10)"
        )
    spark.sql(
        "CREATE OR REPLACE TABLE t USING delta TBLPROPERTIES ('new' = '2')"
        " AS SELECT id + 100 AS id, 'x' AS s FROM range(3)"
    )
    path = location(spark, "t")
    assert ids(spark, "t") == [100, 101, 102]
    assert log.versions(path) == ([0, 1] if exists else [0])
    assert log.metadata(path)["configuration"] == {"new": "2"}
    assert log.metadata(path)["partitionColumns"] == []
    if exists:
        earlier = spark.sql("SELECT * FROM t VERSION AS OF 0")
        assert (earlier.columns, earlier.count()) == (["id", "p"], 10)


def test_replace_table_may_read_the_table_it_replaces(spark: SparkSession):
    spark.sql("CREATE TABLE t USING delta AS SELECT id FROM range(10)")
    spark.sql("CREATE OR REPLACE TABLE t USING delta AS SELECT id * 2 AS id FROM t WHERE id > 6")
    assert ids(spark, "t") == [14, 16, 18]


def test_replace_table_without_query_leaves_it_empty(spark: SparkSession):
    spark.sql("CREATE TABLE t USING delta AS SELECT id FROM range(10)")
    spark.sql("CREATE OR REPLACE TABLE t (s STRING) USING delta")
    assert (spark.table("t").columns, spark.table("t").count()) == (["s"], 0)


def test_replace_of_a_table_that_is_not_there_is_refused(spark: SparkSession):
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("REPLACE TABLE t USING delta AS SELECT 1 AS id")


@pytest.fixture(params=["name", "path"])
def target(request: pytest.FixtureRequest, spark: SparkSession, table: str) -> str:
    """A table of ids 0 to 5 and p = id % 3, as SQL names it."""
    query = "SELECT id, id % 3 AS p FROM range(6)"
    if request.param == "path":
        spark.sql(query).write.format("delta").partitionBy("p").save(table)
        return f"delta.`{table}`"
    spark.sql(f"CREATE TABLE t USING delta PARTITIONED BY (p) AS {query}")
    return "t"


@pytest.mark.parametrize(
    ("statement", "added"),
    [
        ("INSERT INTO {t} VALUES (10, 1), (11, NULL)", [(10, 1), (11, None)]),
        ("INSERT INTO {t} (p, id) VALUES (1, 10)", [(10, 1)]),
        ("INSERT INTO {t} (id) VALUES (10)", [(10, None)]),
        ("INSERT INTO {t} BY NAME SELECT 2 AS p, 10 AS id", [(10, 2)]),
        (
            "INSERT INTO {t} PARTITION (p = 7) SELECT id + 10 FROM {t} WHERE id < 2",
            [(10, 7), (11, 7)],
        ),
        ("INSERT INTO {t} TABLE {t}", [(id, id % 3) for id in range(6)]),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE false", []),
    ],
)
def test_insert_adds_rows(
    spark: SparkSession, target: str, statement: str, added: list[tuple[int, int | None]]
):
    spark.sql(statement.format(t=target))
    expected = [*[(id, id % 3) for id in range(6)], *added]
    assert_same_rows([tuple(row) for row in spark.table(target).collect()], expected)


@pytest.mark.parametrize(
    ("overwrite_mode", "statement", "expected"),
    [
        ("static", "INSERT OVERWRITE {t} VALUES (10, 1)", [10]),
        ("dynamic", "INSERT OVERWRITE {t} VALUES (10, 1)", [0, 2, 3, 5, 10]),
        ("static", "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (10)", [0, 2, 3, 5, 10]),
        ("dynamic", "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (10)", [0, 2, 3, 5, 10]),
        ("static", "INSERT OVERWRITE {t} PARTITION (p = 9) VALUES (10)", [0, 1, 2, 3, 4, 5, 10]),
        ("static", "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE p = 0", [0, 3]),
        (
            "dynamic",
            "INSERT OVERWRITE {t} SELECT id + 10, p FROM {t} WHERE id = 4",
            [0, 2, 3, 5, 14],
        ),
        ("dynamic", "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false", [0, 1, 2, 3, 4, 5]),
        ("static", "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false", []),
    ],
)
def test_insert_overwrite_replaces_what_the_overwrite_mode_says(
    spark: SparkSession, target: str, overwrite_mode: str, statement: str, expected: list[int]
):
    mode = {"spark.sql.sources.partitionOverwriteMode": overwrite_mode}
    with session_settings(spark, mode):
        spark.sql(statement.format(t=target))
    assert ids(spark, target) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (1)",
        "INSERT INTO {t} VALUES (1, 2, 3)",
        "INSERT INTO {t} VALUES ('text', 1)",
        "INSERT INTO {t} (nothing) VALUES (1)",
    ],
)
def test_insert_that_does_not_fit_is_refused_and_commits_nothing(
    spark: SparkSession, target: str, statement: str
):
    before = spark.sql(f"SELECT * FROM {target}").collect()
    with pytest.raises(
        Exception, match=r"INSERT_COLUMN_ARITY|CAST_INVALID|SCHEMA_MISMATCH|INCOMPAT"
    ):
        spark.sql(statement.format(t=target))
    assert_same_rows(spark.table(target).collect(), before)


def test_data_dataframe_inserts_into_a_table_by_position(spark: SparkSession):
    spark.sql("CREATE TABLE t (id BIGINT, p BIGINT) USING delta")
    rows(spark, 0, 3).write.insertInto("t")
    rows(spark, 5, 6).write.insertInto("t", overwrite=True)
    assert ids(spark, "t") == [5]


def test_write_to_appends_overwrites_and_creates(spark: SparkSession):
    rows(spark, 0, 3).writeTo("t").using("delta").partitionedBy(F.col("p")).create()
    rows(spark, 3, 6).writeTo("t").append()
    assert ids(spark, "t") == list(range(6))
    rows(spark, 10, 11).writeTo("t").overwritePartitions()
    assert ids(spark, "t") == [0, 2, 3, 5, 10]
    rows(spark, 20, 21).writeTo("t").using("delta").createOrReplace()
    assert ids(spark, "t") == [20]


def test_cached_table_shows_what_a_later_statement_wrote(spark: SparkSession):
    spark.sql("CREATE TABLE t USING delta AS SELECT id FROM range(3)")
    spark.sql("CACHE TABLE t")
    assert ids(spark, "t") == [0, 1, 2]
    spark.sql("INSERT INTO t VALUES (7)")
    assert ids(spark, "t") == [0, 1, 2, 7]
    spark.sql("DELETE FROM t WHERE id = 1")
    assert ids(spark, "t") == [0, 2, 7]


def test_view_over_a_table_shows_its_newest_rows(spark: SparkSession):
    spark.sql("CREATE TABLE t USING delta AS SELECT id FROM range(3)")
    spark.sql("CREATE VIEW v AS SELECT id FROM t WHERE id > 0")
    spark.sql("INSERT INTO t VALUES (7)")
    assert ids(spark, "v") == [1, 2, 7]


def test_names_of_every_spelling(spark: SparkSession):
    for name in ("Mixed_Case", "`select`", "`1st`"):
        spark.sql(f"CREATE TABLE {name} USING delta AS SELECT id FROM range(2)")
        spark.sql(f"INSERT INTO {DATABASE}.{name} VALUES (9)")
        assert ids(spark, f"spark_catalog.{DATABASE}.{name}") == [0, 1, 9]


def test_describe_and_show_return_the_table(spark: SparkSession):
    spark.sql("CREATE TABLE t (id BIGINT COMMENT 'c', p INT) USING delta PARTITIONED BY (p)")
    described = {row.col_name: row for row in spark.sql("DESCRIBE TABLE EXTENDED t").collect()}
    assert described["id"].data_type == "bigint"
    assert described["id"].comment == "c"
    assert described["Provider"].data_type == "delta"
    assert tables_of_catalog(spark) == ["t"]
    assert [row.col_name for row in spark.sql("SHOW COLUMNS IN t").collect()] == ["id", "p"]


@pytest.mark.parametrize("provider", ["parquet", "json"])
def test_tables_of_other_providers_work_as_before(spark: SparkSession, provider: str):
    spark.sql(f"CREATE TABLE o USING {provider} AS SELECT id FROM range(3)")
    spark.sql("INSERT INTO o VALUES (7)")
    assert ids(spark, "o") == [0, 1, 2, 7]
    spark.range(2).write.format(provider).mode("overwrite").saveAsTable("o")
    assert ids(spark, "o") == [0, 1]
    spark.sql("ALTER TABLE o SET TBLPROPERTIES ('a' = 'b')")
    spark.sql("CREATE TABLE d USING delta AS SELECT o.id FROM o JOIN o b ON o.id = b.id")
    assert ids(spark, "d") == [0, 1]
    spark.sql("DROP TABLE o")
    assert tables_of_catalog(spark) == ["d"]


@pytest.mark.parametrize("folder", ["sp ace", "per%20cent", "ünï", "a+b=c"])
def test_table_at_a_location_with_special_characters_is_read_and_written_by_name(
    folder: str, spark: SparkSession, tmp_path: Path
) -> None:
    location = tmp_path / folder
    try:
        spark.sql(f"CREATE TABLE special (id BIGINT) USING delta LOCATION '{location}'")
        spark.sql("INSERT INTO special VALUES (1), (2), (3)")
        spark.sql("DELETE FROM special WHERE id = 2")
        assert sorted(row.id for row in spark.table("special").collect()) == [1, 3]
        by_path = spark.read.format("delta").load(str(location))
        assert sorted(row.id for row in by_path.collect()) == [1, 3]
    finally:
        spark.sql("DROP TABLE IF EXISTS special")


def test_database_with_a_space_in_its_location_holds_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql(f"CREATE DATABASE spaced LOCATION '{tmp_path / 'data base'}'")
    try:
        spark.range(3).write.format("delta").saveAsTable("spaced.t")
        spark.sql("DELETE FROM spaced.t WHERE id = 1")
        assert sorted(row.id for row in spark.table("spaced.t").collect()) == [0, 2]
    finally:
        spark.sql("DROP DATABASE spaced CASCADE")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE t USING delta AS SELECT 2L AS id",
        "REPLACE TABLE t USING delta AS SELECT 2L AS id",
        "CREATE OR REPLACE TABLE t USING delta LOCATION '{table}' AS SELECT 2L AS id",
        "REPLACE TABLE t (id BIGINT) USING delta",
    ],
)
def test_table_that_is_replaced_stays_where_it_is(
    spark: SparkSession, table: str, statement: str
) -> None:
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table}' AS SELECT 1L AS id, 1 AS gone")
    spark.sql(statement.format(table=table))
    assert ids(spark, "t") == ([2] if "SELECT" in statement else [])
    assert (location(spark, "t"), log.versions(table)) == (table, [0, 1])
    assert log.commit_info(table)["operationParameters"]["isManaged"] == "false"
    spark.sql("DROP TABLE t")
    assert Path(table).exists()


def test_writer_replaces_a_table_where_it_is(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table}' AS SELECT 1L AS id")
    spark.range(5, 7).writeTo("t").using("delta").createOrReplace()
    spark.range(6, 8).writeTo("t").using("delta").replace()
    assert (ids(spark, "t"), log.versions(table)) == ([6, 7], [0, 1, 2])


def test_replacement_elsewhere_or_of_a_table_of_others_is_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table}' AS SELECT 1L AS id")
    before = log.contents(table)
    elsewhere = f"CREATE OR REPLACE TABLE t USING delta LOCATION '{tmp_path}/other' AS SELECT 2 a"
    with pytest.raises(InvalidArgumentError, match=r"REPLACED_TABLE_DIFFERS.*location"):
        spark.sql(elsewhere)
    assert log.contents(table) == before and not (tmp_path / "other").exists()
    spark.sql("CREATE TABLE other USING parquet AS SELECT 1L AS id")
    with pytest.raises(InvalidArgumentError, match=r"REPLACED_TABLE_DIFFERS.*provider.*parquet"):
        spark.sql("CREATE OR REPLACE TABLE other USING delta AS SELECT 2L AS id")
    assert ids(spark, "other") == [1]
