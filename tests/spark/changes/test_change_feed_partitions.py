"""A change data feed over versions that are partitioned by other columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("id", "p", "q", "s")
Row = tuple[Any, ...]


@dataclass
class Recorded:
    """A table, and by brute force what its feed shows: change, version and row."""

    spark: SparkSession
    path: str
    options: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    changes: list[Row] = field(default_factory=list)
    version: int = -1

    def record(self, kind: str, rows: list[Row]) -> None:
        self.changes += [(kind, self.version, *row) for row in rows]

    def overwrite(self, first_id: int, partition_by: tuple[str, ...]) -> None:
        rows: list[Row] = [
            (i, i % 3 if i % 7 else None, i % 2, f"s{i % 4}")
            for i in range(first_id, first_id + 40)
        ]
        df = self.spark.createDataFrame(rows, "id INT, p INT, q INT, s STRING").repartition(2)
        writer = df.write.format("delta").mode("overwrite").options(**self.options)
        writer.option("overwriteSchema", "true").partitionBy(*partition_by).save(self.path)
        self.version += 1
        self.record("delete", self.rows)
        self.record("insert", rows)
        self.rows = rows

    def delete(self, divisor: int) -> None:
        DeltaTable.forPath(self.spark, self.path).delete(f"id % {divisor} = 0")
        self.version += 1
        self.record("delete", [row for row in self.rows if row[0] % divisor == 0])
        self.rows = [row for row in self.rows if row[0] % divisor]

    def move(self, divisor: int) -> None:
        """Change a column by which the table may be partitioned."""
        table = DeltaTable.forPath(self.spark, self.path)
        table.update(f"id % {divisor} = 0", {"p": "8"})
        self.version += 1
        before = [row for row in self.rows if row[0] % divisor == 0]
        after: list[Row] = [(row[0], 8, *row[2:]) for row in before]
        self.record("update_preimage", before)
        self.record("update_postimage", after)
        self.rows = [row for row in self.rows if row[0] % divisor] + after

    def shown(self, first: int = 0, condition: str = "true") -> list[Row]:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        df = reader.option("startingVersion", first).load(self.path).where(condition)
        found = df.select("_change_type", "_commit_version", *COLUMNS).collect()
        return in_order([tuple(row) for row in found])

    def expected(self, first: int = 0, condition: str = "true") -> list[Row]:
        schema = "_change_type STRING, _commit_version INT, id INT, p INT, q INT, s STRING"
        rows = self.spark.createDataFrame([c for c in self.changes if c[1] >= first], schema)
        return in_order([tuple(row) for row in rows.where(condition).collect()])


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


@pytest.fixture(scope="module", params=["by name", "mapped"])
def recorded(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Recorded:
    """Rows that are partitioned by p, by q and s, and by nothing, and changed each time."""
    options = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    if request.param == "mapped":
        options["delta.columnMapping.mode"] = "name"
    path = str(tmp_path_factory.mktemp("recorded") / "table")
    table = Recorded(spark, path, options)
    for first_id, partition_by in [(0, ("p",)), (100, ("q", "s")), (200, ())]:
        table.overwrite(first_id, partition_by)
        table.delete(5)
        table.move(4)
    return table


@pytest.mark.parametrize("first", range(9))
def test_each_column_is_shown_with_its_values_wherever_it_was_stored(
    recorded: Recorded, first: int
) -> None:
    assert recorded.shown(first) == recorded.expected(first) != []


@pytest.mark.parametrize(
    "condition",
    [
        "p = 1",
        "p IS NULL",
        "p = 8 AND _change_type = 'update_postimage'",
        "q = 1 AND s = 's3'",
        "s IN ('s0', 's1') AND _change_type = 'delete'",
        "p > 1 OR q = 0",
        "q = 0 AND _commit_version BETWEEN 2 AND 6",
    ],
)
def test_filters_select_rows_of_partitions_and_of_files(recorded: Recorded, condition: str) -> None:
    assert recorded.shown(condition=condition) == recorded.expected(condition=condition) != []


def test_columns_that_are_not_asked_for_are_not_needed(recorded: Recorded) -> None:
    reader = recorded.spark.read.format("delta").option("readChangeFeed", "true")
    df = reader.option("startingVersion", 0).load(recorded.path)
    counts = {row[0]: row[1] for row in df.groupBy("p").count().collect()}
    of = {value: sum(c[3] == value for c in recorded.changes) for value in (None, 0, 1, 2, 8)}
    assert counts == of
    assert df.count() == len(recorded.changes)
