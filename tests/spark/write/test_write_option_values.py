"""Options and settings with invalid values, through each write API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.databases import own_database
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession

Write = Callable[["SparkSession", str, dict[str, str]], object]


def _writer(spark: SparkSession, options: dict[str, str]) -> DataFrameWriter:
    return spark.range(3, 5).write.format("delta").options(**options)


def _by_statement(spark: SparkSession, path: str, options: dict[str, str]) -> object:
    stated = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return spark.sql(f"INSERT INTO t WITH ({stated}) VALUES (3), (4)")


APPENDS: dict[str, Write] = {
    "save": lambda spark, path, options: _writer(spark, options).mode("append").save(path),
    "saveAsTable": lambda spark, _, options: (
        _writer(spark, options).mode("append").saveAsTable("t")
    ),
    "insertInto": lambda spark, _, options: _writer(spark, options).insertInto("t"),
    "writeTo": lambda spark, _, options: spark.range(3, 5).writeTo("t").options(**options).append(),
    "INSERT": _by_statement,
}
OVERWRITES: dict[str, Write] = {
    "save": lambda spark, path, options: _writer(spark, options).mode("overwrite").save(path),
    "saveAsTable": lambda spark, _, options: (
        _writer(spark, options).mode("overwrite").saveAsTable("t")
    ),
}


@pytest.fixture(autouse=True)
def _target(spark: SparkSession, table: str) -> Iterator[None]:
    with own_database(spark, "option_values"):
        spark.sql(f"CREATE TABLE t (id BIGINT) USING delta LOCATION '{table}'")
        yield


@pytest.mark.parametrize("write_api", APPENDS)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mergeSchema", "maybe"),
        ("overwriteSchema", "1"),
        ("optimizeWrite", ""),
        ("dataChange", "no"),
        ("delta.nope", "1"),
        ("delta.enableDeletionVectors", "maybe"),
        ("delta.checkpointInterval", "-3"),
        ("delta.autoOptimize.autoCompact", "auto"),
    ],
)
def test_append_is_refused_whose_option_has_a_value_that_it_cannot_have(
    spark: SparkSession, table: str, write_api: str, option: str, value: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=option):
        APPENDS[write_api](spark, table, {option: value})
    assert log.newest(table) == 0


@pytest.mark.parametrize("write_api", OVERWRITES)
@pytest.mark.parametrize("replaces", ["true", "false"])
@pytest.mark.parametrize(
    "options",
    [{"mergeSchema": "maybe"}, {"overwriteSchema": "maybe"}, {"delta.nope": "1"}],
    ids=str,
)
def test_overwrite_is_refused_whose_option_has_a_value_that_it_cannot_have(
    spark: SparkSession, table: str, write_api: str, replaces: str, options: dict[str, str]
) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        OVERWRITES[write_api](spark, table, {"overwriteSchema": replaces, **options})
    assert log.newest(table) == 0


@pytest.mark.parametrize("write_api", OVERWRITES)
def test_property_that_a_write_into_a_table_names_is_not_set_and_the_log_says_so(
    spark: SparkSession, table: str, write_api: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"overwriteSchema": "true", "delta.checkpointInterval": "7"}
    OVERWRITES[write_api](spark, table, options)
    assert log.metadata(table)["configuration"] == {}
    assert log.versions(table) == [0, 1]
    assert "does not set the property delta.checkpointInterval = 7" in caplog.text


@pytest.mark.parametrize("write_api", APPENDS)
def test_constraint_that_a_write_into_a_table_names_is_not_added_and_the_log_says_so(
    spark: SparkSession, table: str, write_api: str, caplog: pytest.LogCaptureFixture
) -> None:
    APPENDS[write_api](spark, table, {"delta.constraints.c": "id > 1000000"})
    assert log.metadata(table)["configuration"] == {}
    assert log.newest(table) == 1
    (record,) = [r for r in caplog.records if "delta.constraints.c" in r.getMessage()]
    assert "ALTER TABLE ... ADD CONSTRAINT" in record.getMessage()


@pytest.mark.parametrize("write_api", APPENDS)
def test_option_that_nobody_knows_goes_to_parquet_as_in_spark(
    spark: SparkSession, table: str, write_api: str
) -> None:
    APPENDS[write_api](spark, table, {"nobody.knows": "it", "parquet.page.size": "65536"})
    assert log.newest(table) == 1


@pytest.mark.parametrize("prefix", ["spark.deltaic.", "spark.databricks.delta."])
@pytest.mark.parametrize("setting", ["schema.autoMerge.enabled", "optimizeWrite.enabled"])
def test_setting_that_is_neither_true_nor_false_is_an_error(
    spark: SparkSession, table: str, prefix: str, setting: str
) -> None:
    with (
        session_settings(spark, {prefix + setting: "maybe"}),
        pytest.raises(InvalidArgumentError, match=rf"{setting}.*true or false"),
    ):
        APPENDS["save"](spark, table, {})
    assert log.newest(table) == 0
