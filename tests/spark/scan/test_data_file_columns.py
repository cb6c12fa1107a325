"""A data file without any column that it should have is an error; one that is older is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support import log
from tests.support.foreign_table import MAPPED, ForeignTable, field, mapped
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READERS = [{}, {"spark.sql.parquet.enableVectorizedReader": "false"}]
REFUSED = r"DELTAIC_DATA_FILE_WITHOUT_COLUMNS\] Table .*{table}, version \d+: data file .*{file}"


def mode(name: str) -> dict[str, str]:
    return {"delta.columnMapping.mode": name, "delta.columnMapping.maxColumnId": "9"}


def column(name: str, *values: Any, number: int | None = None) -> pa.Table:
    metadata = None if number is None else {b"PARQUET:field_id": str(number).encode()}
    array = pa.array(values, pa.int32())
    return pa.Table.from_arrays(
        [array], schema=pa.schema([pa.field(name, pa.int32(), metadata=metadata)])
    )


@pytest.fixture(params=READERS, ids=["vectorized", "row-based"])
def reader(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    with session_settings(spark, request.param):
        yield


#: The columns and the definition of a table, a file, and what the error says of them.
MISPLACED: dict[str, tuple[list[dict[str, Any]], dict[str, Any], pa.Table, str]] = {
    "physical names without mapping": (
        [field("id", "integer"), field("v", "integer")],
        {},
        column("col-1", 1),
        "It holds col-1; the query reads id, v",
    ),
    "physical names where the protocol lacks mapping": (
        [mapped("id", "integer", 1)],
        {"properties": mode("name")},
        column("col-1", 1, number=1),
        r"It holds col-1 \(field id 1\); the query reads id",
    ),
    "names of users in mode name": (
        [mapped("id", "integer", 1), mapped("v", "integer", 2)],
        {"properties": mode("name"), "protocol": MAPPED},
        column("ID", 1),
        "It holds ID; the query reads id as col-1, v as col-2",
    ),
    "names of users with their ids in mode name": (
        [mapped("id", "integer", 8), mapped("v", "integer", 9)],
        {"properties": mode("name"), "protocol": MAPPED},
        column("id", 1, number=8),
        r"It holds id \(field id 8\); the query reads id as col-8, v as col-9",
    ),
    "no ids in mode id": (
        [mapped("id", "integer", 1)],
        {"properties": mode("id"), "protocol": MAPPED},
        column("col-1", 1),
        "It holds col-1; the query reads id with the field id 1",
    ),
}


@pytest.mark.protocol("reader-column-mapping-6")
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("case", MISPLACED)
def test_file_without_the_columns_is_refused_with_what_it_holds(
    spark: SparkSession, table: str, case: str
) -> None:
    columns, definition, rows, described = MISPLACED[case]
    file = ForeignTable(table, *columns, **definition).add(rows)
    refused = REFUSED.format(table=table, file=file.name)
    with pytest.raises(Exception, match=rf"{refused}.*{described}"):
        rows_of(spark, table)
    with pytest.raises(Exception, match=refused):
        spark.sql(f"SELECT max(id) FROM delta.`{table}` WHERE id > 0 OR id IS NULL").collect()
    # No column is asked for, so none is made up.
    assert spark.sql(f"SELECT 1 FROM delta.`{table}`").collect() == [(1,)]


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-3")
@pytest.mark.usefixtures("reader")
def test_file_that_lacks_only_the_columns_of_the_query_has_nulls(
    spark: SparkSession, table: str
) -> None:
    ours = ForeignTable(
        table,
        field("id", "integer"),
        field("late", "integer"),
        field("p", "integer"),
        partition_by=["p"],
    )
    ours.add(column("ID", 1), {"p": "1"})
    assert spark.sql(f"SELECT late FROM delta.`{table}`").collect() == [(None,)]
    # A file from before there were other columns than those that the table is partitioned by.
    ours.add(column("P", 2), {"p": "2"})
    assert rows_of(spark, table) == [(1, None, 1), (None, None, 2)]


@pytest.mark.protocol("consistency-between-table-metadata-and-data-files-3")
@pytest.mark.protocol("reader-column-mapping-7")
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("mapping", ["name", "id"])
def test_file_of_which_all_columns_were_dropped_has_nulls(
    spark: SparkSession, table: str, mapping: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (a INT) USING delta"
        f" TBLPROPERTIES ('delta.columnMapping.mode' = '{mapping}')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1), (2)")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (b INT)")
    spark.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN a")
    assert rows_of(spark, table) == [(None,), (None,)]
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (a INT)")
    assert rows_of(spark, table) == [(None, None), (None, None)]


@pytest.mark.usefixtures("reader")
def test_file_from_before_the_mapping_whose_column_was_dropped_and_added_again_has_nulls(
    spark: SparkSession, table: str
) -> None:
    spark.range(2).selectExpr("CAST(id AS INT) a").write.format("delta").save(table)
    name = f"delta.`{table}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (b INT)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN a")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (a INT)")
    assert rows_of(spark, table) == [(None, None), (None, None)]
    spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
    spark.sql(f"DELETE FROM {name} WHERE b = 1")
    assert rows_of(spark, table) == [(None, None), (None, None)]


@pytest.mark.parametrize(
    "kind", ["ARRAY<STRING>", "MAP<STRING, INT>", "ARRAY<STRUCT<x: INT>>", "VARIANT"]
)
def test_file_from_before_the_mapping_is_as_wide_as_its_columns_and_the_fields_of_structs(
    spark: SparkSession, table: str, kind: str
) -> None:
    name = f"delta.`{table}`"
    spark.sql(f"CREATE TABLE {name} (a INT, more {kind}) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, NULL), (2, NULL)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (c INT)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (a, more)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (a INT)")
    assert rows_of(spark, table) == [(None, None), (None, None)]


def test_rows_of_a_refused_file_are_not_copied_either(spark: SparkSession, table: str) -> None:
    ForeignTable(table, field("id", "integer")).add(column("col-1", 1))
    before = log.newest(table)
    with pytest.raises(Exception, match="DELTAIC_DATA_FILE_WITHOUT_COLUMNS"):
        spark.sql(f"UPDATE delta.`{table}` SET id = 2 WHERE id IS NULL")
    assert log.newest(table) == before
