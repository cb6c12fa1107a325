"""What table properties require of data files, and unsupported properties of other engines."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support import log
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = "'delta.enableDeletionVectors' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true'"
COLUMNS = (
    "id BIGINT, s STRING, b BOOLEAN, i INT, d DOUBLE, dec DECIMAL(20, 3), t TIMESTAMP, "
    "arr ARRAY<STRING>, bin BINARY, p INT"
)
ROWS = (
    "SELECT /*+ COALESCE(1) */ id, concat('name ', id), id % 3 = 0, INT(id - 500), id / 7D, "
    "CAST(id / 7 AS DECIMAL(20, 3)), TIMESTAMP_SECONDS(id * 3601), "
    "array(STRING(id), NULL), BINARY(STRING(id)), INT(id % 2) FROM range(3000)"
)


def create(spark: SparkSession, table: str, properties: str, partitioned: str = "") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({COLUMNS}) USING delta {partitioned} "
        f"TBLPROPERTIES ({properties})"
    )


def change(spark: SparkSession, table: str) -> None:
    """Write by each kind of statement."""
    spark.sql(f"INSERT INTO delta.`{table}` {ROWS}")
    spark.sql(f"UPDATE delta.`{table}` SET s = 'changed' WHERE id % 100 = 7")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 100 = 8")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT id FROM range(2990, 3010)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (id, p) "
        "VALUES (s.id, 1)"
    )


def files(table: str, folder: str = "") -> list[pq.ParquetFile]:
    return [
        pq.ParquetFile(path)
        for path in Path(table, folder).rglob("*.parquet")
        if "_delta_log" not in path.parts and (folder or "_change_data" not in path.parts)
    ]


def is_version_2(file: pq.ParquetFile) -> bool:
    """Whether the pages are of version 2; of numbers, those alone are packed by differences."""
    columns = (file.metadata.row_group(0).column(n) for n in range(file.metadata.num_columns))
    encodings = {encoding for column in columns for encoding in column.encodings}
    return "BIT_PACKED" not in encodings


@pytest.mark.parametrize("vectors", [VECTORS, "'k' = 'v'"])
@pytest.mark.parametrize(("version", "expected"), [("1.0.0", False), ("2.12.0", True)])
def test_files_are_of_the_parquet_version_that_the_table_says(
    spark: SparkSession, table: str, tmp_path: Path, version: str, expected: bool, vectors: str
) -> None:
    plain = f"{tmp_path}/plain"
    create(spark, table, f"'delta.parquet.format.version' = '{version}', {FEED}, {vectors}")
    create(spark, plain, "'k' = 'v'")
    for path in (table, plain):
        change(spark, path)
    written = files(table)
    assert len(written) >= 3
    assert [is_version_2(file) for file in written] == [expected] * len(written)
    changes = files(table, "_change_data")
    assert changes and {is_version_2(file) for file in changes} == {expected}
    # The plain table's files are of version 1, which everything else here is tested with.
    read = spark.read.format("delta")
    assert sorted(map(repr, rows_of(spark, table))) == sorted(map(repr, rows_of(spark, plain)))
    for condition in ("i > 2400", "s = 'name 17'", "b AND d < 10", "p = 1 AND bin IS NULL"):
        ours = read.load(table).where(condition).collect()
        assert sorted(map(repr, ours)) == sorted(
            map(repr, read.load(plain).where(condition).collect())
        )


def test_the_write_option_takes_precedence_over_the_parquet_version_of_the_table(
    spark: SparkSession, table: str
) -> None:
    create(spark, table, "'delta.parquet.format.version' = '2.12.0'")
    rows = spark.sql(ROWS).toDF(
        *(column.split()[0] for column in COLUMNS.split(", ", 9)[:5]),
        *("dec", "t", "arr", "bin", "p"),
    )
    option = ("parquet.writer.version", "v1")
    rows.write.format("delta").mode("append").option(*option).save(table)
    assert [is_version_2(file) for file in files(table)] == [False]


def test_a_parquet_version_that_there_is_not_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match=r"delta\.parquet\.format\.version"):
        create(spark, table, "'delta.parquet.format.version' = '2.6'")
    assert not Path(table).exists()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("'delta.writePartitionColumnsToParquet' = 'true'", True),
        ("'delta.writePartitionColumnsToParquet' = 'false'", False),
        ("'delta.enableMaterializePartitionColumnsFeature' = 'true'", True),
        (
            "'delta.feature.materializePartitionColumns' = 'supported', "
            "'delta.writePartitionColumnsToParquet' = 'false'",
            True,
        ),
        (
            "'delta.columnMapping.mode' = 'name', 'delta.writePartitionColumnsToParquet' = 'true'",
            True,
        ),
        ("'k' = 'v'", False),
    ],
)
def test_files_hold_partition_columns_where_the_table_asks_for_it(
    spark: SparkSession, table: str, properties: str, expected: bool
) -> None:
    create(spark, table, f"{properties}, {VECTORS}", "PARTITIONED BY (p)")
    change(spark, table)
    fields = log.metadata(table)["schemaString"]
    written = files(table)
    assert len(written) >= 3
    for file in written:
        names = file.schema_arrow.names
        physical = [n for n in names if n == "p" or n.startswith("col-")]
        is_mapped = "columnMapping" in fields
        assert (len(names) == 10) is expected, names
        assert is_mapped or ("p" in physical) is expected
    for add in log.active_files(table):
        assert not {"p"} & log.statistics(add)["nullCount"].keys()
    counts = spark.read.format("delta").load(table).groupBy("p").count().collect()
    assert {row["p"]: row["count"] for row in counts} == {0: 1470, 1: 1510}


@pytest.mark.parametrize(("version", "tag"), [("V1", "1"), ("V2", "2")])
def test_files_of_a_table_that_is_compatible_with_iceberg_say_with_which_version(
    spark: SparkSession, table: str, version: str, tag: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, s STRING, p INT) USING delta "
        f"TBLPROPERTIES ('delta.enableIcebergCompat{version}' = 'true', {FEED})"
    )
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id, 'a', 1 FROM range(30)")
    change_rows = f"delta.`{table}`"
    spark.sql(f"UPDATE {change_rows} SET s = 'b' WHERE id = 7")
    spark.sql(f"DELETE FROM {change_rows} WHERE id = 8")
    spark.sql(
        f"MERGE INTO {change_rows} t USING (SELECT id FROM range(9, 40)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = 'c' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    adds = [a for v in log.versions(table) for a in log.actions(table, v, "add")]
    assert len(adds) > 3
    assert {add["tags"]["ICEBERG_COMPAT_VERSION"] for add in adds} == {tag}


def test_files_of_other_tables_have_no_tag(spark: SparkSession, table: str) -> None:
    create(spark, table, "'delta.columnMapping.mode' = 'name'")
    spark.sql(f"INSERT INTO delta.`{table}` {ROWS}")
    assert all("tags" not in add for add in log.active_files(table))


def give(table: str, **properties: str) -> None:
    """Give a table properties as another engine would."""
    body = log.metadata(table)
    named = {f"delta.{name.replace('__', '.')}": value for name, value in properties.items()}
    after = {**body, "configuration": {**body["configuration"], **named}}
    log.write_commit(table, log.newest(table) + 1, {"commitInfo": {}}, {"metaData": after})


def test_a_table_that_is_offered_as_another_format_is_read_and_not_written(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1)")
    give(table, universalFormat__enabledFormats="iceberg,hudi")
    version = log.newest(table)
    stored = log.stored_files(table)
    refused = r"delta\.universalFormat\.enabledFormats = iceberg,hudi"
    for statement in (
        f"INSERT INTO delta.`{table}` VALUES (2)",
        f"INSERT OVERWRITE delta.`{table}` VALUES (2)",
        f"UPDATE delta.`{table}` SET id = 3",
        f"DELETE FROM delta.`{table}`",
        f"ALTER TABLE delta.`{table}` ADD COLUMNS (c INT)",
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('a' = 'b')",
        f"TRUNCATE TABLE delta.`{table}`",
    ):
        with pytest.raises(Exception, match=refused):
            spark.sql(statement)
    with pytest.raises(Exception, match=refused):
        spark.range(1).selectExpr("INT(id) id").write.format("delta").mode("append").save(table)
    assert log.newest(table) == version and log.stored_files(table) == stored
    assert rows_of(spark, table) == [(1,)]

    unset = "UNSET TBLPROPERTIES ('delta.universalFormat.enabledFormats')"
    spark.sql(f"ALTER TABLE delta.`{table}` {unset}")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    assert sorted(rows_of(spark, table)) == [(1,), (2,)]


@pytest.mark.parametrize(
    "given",
    [
        "'delta.universalFormat.enabledFormats' = 'hudi'",
        "'delta.castIcebergTimeType' = 'true'",
        "'delta.coordinatedCommits.commitCoordinator-preview' = 'x'",
        "'delta.parquet.writer.version' = 'v2'",
    ],
)
def test_what_is_not_done_is_refused_by_name_and_changes_nothing(
    spark: SparkSession, table: str, given: str
) -> None:
    name = given.split("'")[1].replace(".", r"\.")
    with pytest.raises(Exception, match=name):
        spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta TBLPROPERTIES ({given})")
    assert not Path(table).exists()
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    with pytest.raises(Exception, match=name):
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({given})")
    default, value = given.split("'")[1].removeprefix("delta."), given.split("'")[3]
    setting = f"spark.databricks.delta.properties.defaults.{default}"
    if default == "parquet.writer.version":
        return  # a default that names no property is passed over, as by delta-spark
    spark.conf.set(setting, value)
    try:
        with pytest.raises(Exception, match=name):
            spark.range(1).write.format("delta").save(f"{table}-new")
        assert not Path(f"{table}-new").exists()
    finally:
        spark.conf.unset(setting)
    assert log.newest(table) == 0


def test_property_of_another_engine_that_loses_nothing_is_logged_once(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    give(table, castIcebergTimeType="true")
    with caplog.at_level(logging.WARNING, "deltaic"):
        for value in range(2):
            spark.sql(f"INSERT INTO delta.`{table}` VALUES ({value})")
        spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (c INT)")
    warnings = [r for r in caplog.records if "castIcebergTimeType" in r.getMessage()]
    assert len(warnings) == 1 and table in warnings[0].getMessage()
    assert sorted(rows_of(spark, table)) == [(0, None), (1, None)]
    # It says so still, for the other engine.
    assert log.metadata(table)["configuration"]["delta.castIcebergTimeType"] == "true"


def test_auto_optimize_stands_for_both_properties_that_are_not_set(
    spark: SparkSession, table: str
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta"
        " TBLPROPERTIES ('delta.autoOptimize' = 'true')"
    )
    stored = log.metadata(table)["configuration"]
    assert stored == {"delta.autoOptimize": "true"}
    rows = f"INSERT INTO delta.`{table}` SELECT id FROM range(0, 90, 1, 6)"
    spark.sql(rows)
    assert len(log.last_actions(table, "add")) == 1
    set_both = "SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'false')"
    spark.sql(f"ALTER TABLE delta.`{table}` {set_both}")
    spark.sql(rows)
    assert len(log.last_actions(table, "add")) == 6
    unset = "UNSET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite')"
    spark.sql(f"ALTER TABLE delta.`{table}` {unset}")
    assert log.metadata(table)["configuration"] == stored


def test_a_table_with_a_commit_coordinator_is_read_as_long_as_all_is_published(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1)")
    give(table, coordinatedCommits__commitCoordinator__preview="x")
    body = log.metadata(table)
    coordinator = {"delta.coordinatedCommits.commitCoordinator-preview": "x"}
    log.write_commit(
        table, log.newest(table) + 1, {"metaData": {**body, "configuration": coordinator}}
    )
    assert rows_of(spark, table) == [(1,)]
    with pytest.raises(Exception, match="commitCoordinator-preview = x"):
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (2)")
    staged = Path(table, "_delta_log", "_staged_commits")
    staged.mkdir()
    name = f"{log.newest(table) + 1:020d}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    (staged / name).write_text("{}\n")
    with pytest.raises(Exception, match=name):
        rows_of(spark, table)
    (staged / name).unlink()
    assert rows_of(spark, table) == [(1,)]


def test_older_spelling_by_which_another_engine_optimizes_writes_is_done_as_far_as_it_is(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    rows = f"INSERT INTO delta.`{table}` SELECT id FROM range(0, 90, 1, 6)"
    spark.sql(rows)
    assert len(log.last_actions(table, "add")) == 6
    give(table, autoOptimize="true")
    spark.sql(rows)
    assert len(log.last_actions(table, "add")) == 1


def test_files_of_an_optimized_write_are_as_large_as_the_session_says(
    spark: SparkSession, table: str
) -> None:
    """A megabyte of shuffled rows goes to a file."""
    with session_settings(
        spark,
        {
            "spark.deltaic.optimizeWrite.enabled": "true",
            "spark.deltaic.optimizeWrite.binSize": "1",
            "spark.sql.shuffle.partitions": "16",
        },
    ):
        spark.range(0, 60_000, 1, 4).selectExpr("id", "sha2(STRING(id), 256) AS s").write.format(
            "delta"
        ).save(table)
        first = len(log.last_actions(table, "add"))
    with session_settings(spark, {"spark.deltaic.optimizeWrite.enabled": "true"}):
        spark.read.format("delta").load(table).repartition(4).write.format("delta").save(
            f"{table}-few"
        )
    assert 3 <= first <= 12
    # By default all rows fit into one bin, and Spark keeps a partition for each of its two cores.
    assert len(log.last_actions(f"{table}-few", "add")) <= 2


@pytest.mark.parametrize(("length", "longest"), [(None, 32), ("5", 5)])
def test_bounds_keep_as_many_characters_as_the_table_says(
    spark: SparkSession, table: str, length: str | None, longest: int
) -> None:
    name = "delta.dataSkippingStringPrefixLength"
    given = f"TBLPROPERTIES ('{name}' = '{length}')" if length else ""
    spark.sql(f"CREATE TABLE delta.`{table}` (s STRING) USING delta {given}")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (repeat('a', 50))")
    (add,) = log.last_actions(table, "add")
    assert log.statistics(add)["minValues"] == {"s": "a" * longest}


def test_property_that_an_append_does_not_set_is_logged(
    spark: SparkSession, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    with caplog.at_level(logging.WARNING, "deltaic"):
        for _ in range(2):
            rows = spark.range(1).write.format("delta").mode("append")
            rows.option("delta.appendOnly", "true").save(table)
    (warning,) = [r for r in caplog.records if "delta.appendOnly" in r.getMessage()]
    assert "ALTER TABLE" in warning.getMessage()
    assert log.metadata(table)["configuration"] == {}
