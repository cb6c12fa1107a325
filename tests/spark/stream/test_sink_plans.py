"""A batch of a stream is planned, cast and checked as the write of a batch query."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.support import log
from tests.support.executions import executed_plans
from tests.support.plans import nodes_below
from tests.support.session_settings import session_settings
from tests.support.streams import stream_of, write_stream
from tests.support.table_builder import append_file, build_table, in_order, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Columns and properties of tables whose writes need different operators.
TARGETS = {
    "plain": "id BIGINT, v STRING) USING delta",
    "checked": "id BIGINT NOT NULL, v CHAR(3), g BIGINT GENERATED ALWAYS AS (id * 2)) USING delta",
    "filled": (
        "id BIGINT, v STRING, d STRING DEFAULT 'x', i BIGINT GENERATED ALWAYS AS IDENTITY)"
        " USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    ),
    "constrained": "id BIGINT, v STRING, CONSTRAINT small CHECK (id < 10 AND v > '')) USING delta",
    "clustered": "id BIGINT, v STRING) USING delta CLUSTER BY (v)",
    "partitions": "id BIGINT, v STRING) USING delta PARTITIONED BY (v)",
    "optimized": (
        "id BIGINT, v STRING) USING delta PARTITIONED BY (v)"
        " TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')"
    ),
}


def operators(plan: Any) -> list[str]:
    """The operators below the root and above the scan, with the expressions of projections."""
    found = []
    for node in nodes_below(plan)[1:]:
        # The rows of a stream are counted above its scan.
        if node.kind in ("ColumnarToRowExec", "StreamedRowsExec", "BatchScanExec"):
            break
        projection = re.sub(r"#\d+L?|@\w+", "", node.text) if node.kind == "ProjectExec" else ""
        found.append(f"{node.kind} {projection}".strip())
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_plan_of_a_batch_is_that_of_a_batch_write(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    source, tables = str(tmp_path / "source"), [str(tmp_path / name) for name in ("one", "two")]
    build_table(spark, source, "id INT, v STRING", [[(1, "a"), (2, "b")]])
    for table in tables:
        spark.sql(f"CREATE TABLE delta.`{table}` ({TARGETS[target]}")
    query = write_stream(stream_of(spark, source), tables[0], tmp_path / "checkpoint")
    streamed = query._jsq.streamingQuery().lastExecution().executedPlan()
    rows = spark.read.format("delta").load(source).write.format("delta").mode("append")
    plans = executed_plans(spark, lambda: rows.save(tables[1]))
    [written] = [plan for plan in map(operators, plans) if plan]
    assert operators(streamed) == written
    assert rows_of(spark, tables[0]) == rows_of(spark, tables[1])


def above_the_aggregation(found: list[str]) -> list[str]:
    """A stream computes an aggregate by other operators than a batch query, with its state."""
    kinds = [found.split()[0] for found in found]
    return found[: next(n for n, kind in enumerate(kinds) if "Aggregate" in kind)]


@pytest.mark.parametrize("target", TARGETS)
def test_plan_of_a_batch_in_complete_mode_is_that_of_an_overwrite(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    source, tables = str(tmp_path / "source"), [str(tmp_path / name) for name in ("one", "two")]
    build_table(spark, source, "id INT, v STRING", [[(1, "a"), (2, "b"), (3, "b")]])
    for table in tables:
        spark.sql(f"CREATE TABLE delta.`{table}` ({TARGETS[target]}")
        spark.sql(f"INSERT INTO delta.`{table}` (id, v) VALUES (7, 'z')")

    def newest(rows: DataFrame) -> DataFrame:
        """The filter keeps the casts and computed columns apart from the aggregate."""
        return rows.groupBy("v").agg(F.max("id").alias("id")).where("id > 0")

    stream = newest(stream_of(spark, source))
    query = write_stream(stream, tables[0], tmp_path / "checkpoint", mode="complete")
    streamed = query._jsq.streamingQuery().lastExecution().executedPlan()
    rows = newest(spark.read.format("delta").load(source)).write.format("delta").mode("overwrite")
    # Spark disables adaptive execution in a query with state.
    with session_settings(spark, {"spark.sql.adaptive.enabled": "false"}):
        plans = executed_plans(spark, lambda: rows.save(tables[1]))
    [written] = [plan for plan in map(operators, plans) if plan]
    assert above_the_aggregation(operators(streamed)) == above_the_aggregation(written)
    for table in tables:
        found = spark.read.format("delta").load(table).selectExpr("id", "rtrim(v)").collect()
        assert in_order(map(tuple, found)) == [(1, "a"), (3, "b")]


CASTS: dict[str, tuple[str, str, str]] = {
    "a number too large for the column": ("BIGINT", "INT", "5000000000"),
    "a decimal too large": ("DECIMAL(12, 2)", "DECIMAL(5, 2)", "12345678.91BD"),
    "a string that is no number": ("STRING", "INT", "'seven'"),
    "a string that is too long": ("STRING", "VARCHAR(2)", "'seven'"),
    "a null": ("INT", "INT NOT NULL", "CAST(NULL AS INT)"),
}


@pytest.mark.parametrize("case", CASTS)
def test_value_that_does_not_fit_fails_the_batch_as_it_fails_a_write(
    spark: SparkSession, table: str, tmp_path: Path, case: str
) -> None:
    of_source, of_table, value = CASTS[case]
    source = str(tmp_path / "source")
    spark.sql(f"CREATE TABLE delta.`{source}` (id INT, v {of_source}) USING delta")
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (1, {value})")
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, v {of_table}) USING delta")
    errors = []
    rows = spark.read.format("delta").load(source).write.format("delta").mode("append")
    for write in (
        lambda: rows.save(table),
        lambda: write_stream(stream_of(spark, source), table, tmp_path / "checkpoint"),
    ):
        with pytest.raises(PySparkException) as caught:
            write()
        # The error of a stream has the error of its batch in its message.
        errors.append(set(re.findall(r"\[([A-Z_.0-9]+)\]", str(caught.value))))
    assert errors[0] and errors[0] <= errors[1]
    assert log.versions(table) == [0]


def test_fields_of_structs_are_cast_by_name(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    columns = "id INT, s STRUCT<b: INT, a: INT>, l ARRAY<STRUCT<y: INT, x: INT>>"
    build_table(spark, source, columns, [[(1, (10, 5), [(2, 1)])]])
    append_file(spark, source, columns, [(2, None, [(4, 3), None])])
    spark.sql(
        f"CREATE TABLE delta.`{table}` (l ARRAY<STRUCT<x: BIGINT, y: STRING>>,"
        " s STRUCT<a: INT, b: BIGINT>, id BIGINT) USING delta"
    )
    write_stream(stream_of(spark, source), table, tmp_path / "checkpoint")
    assert rows_of(spark, table) == [
        ([(1, "2")], (5, 10), 1),
        ([(3, "4"), None], None, 2),
    ]
