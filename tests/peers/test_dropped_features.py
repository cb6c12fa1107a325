"""Tables that we take a feature off: delta-spark and delta-rs read them and go on writing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.spark_process import SparkProcess

GO_ON = """
name = f"delta.`{path}`"
spark.sql(f"INSERT INTO {name} VALUES (-7, 'theirs')")
spark.sql(f"UPDATE {name} SET v = 'changed' WHERE id = 1")
history = spark.sql(f"DESCRIBE HISTORY {name}")
history = history.select("version", "operation", "operationParameters")
detail = spark.sql(f"DESCRIBE DETAIL {name}").select("tableFeatures").head()[0]
rows = sorted(map(list, spark.sql(f"SELECT id, v FROM {name}").collect()))
result = {"history": sorted(map(list, history.collect())), "features": detail, "rows": rows}
"""


@pytest.mark.parametrize(
    ("feature", "properties", "before"),
    [
        (
            "checkConstraints",
            "",
            ["ADD CONSTRAINT c CHECK (id > 0)", "DROP CONSTRAINT c"],
        ),
        ("domainMetadata", "'delta.feature.domainMetadata' = 'supported'", []),
        ("inCommitTimestamp", "'delta.enableInCommitTimestamps' = 'true'", []),
    ],
)
def test_peers_go_on_with_a_table_that_lost_a_feature(
    spark: SparkSession,
    delta_spark: SparkProcess,
    table: str,
    feature: str,
    properties: str,
    before: list[str],
) -> None:
    name = f"delta.`{table}`"
    given = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta {given}")
    for change in before:
        spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"ALTER TABLE {name} DROP FEATURE {feature}")
    dropped = log.newest(table)

    seen = delta_spark.run(GO_ON, path=table)
    assert seen["rows"] == [[-7, "theirs"], [1, "changed"], [2, "b"]]
    assert feature not in seen["features"]
    version, operation, parameters = seen["history"][dropped]
    assert (version, operation, parameters["featureName"]) == (dropped, "DROP FEATURE", feature)
    assert [row[0] for row in seen["history"]] == list(range(dropped + 3))

    more = pa.table({"id": pa.array([3], pa.int64()), "v": ["rust"]})
    write_deltalake(table, more, mode="append")
    ours = sorted(map(tuple, spark.read.format("delta").load(table).collect()))
    assert ours == [(-7, "theirs"), (1, "changed"), (2, "b"), (3, "rust")]
    theirs = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["v"]) for row in theirs) == ours
