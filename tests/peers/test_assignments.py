"""UPDATE and INSERT store what delta-spark stores, whatever the store assignment policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table

pytestmark = pytest.mark.thorough

POLICY = "spark.sql.storeAssignmentPolicy"
SCHEMA = (
    "id INT, i INT, b TINYINT, l BIGINT, d DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, bo BOOLEAN, "
    "de DECIMAL(5, 2), f DOUBLE, st STRING, s STRUCT<a: INT, b: STRING>, arr ARRAY<INT>, "
    "m MAP<STRING, INT>, ars ARRAY<STRUCT<a: INT, b: STRING>>, nn STRUCT<q: STRUCT<a: INT>, z: INT>"
)
ASSIGNED = [
    ("i", "'12'"),
    ("i", "'x'"),
    ("i", "3.7"),
    ("i", "3000000000L"),
    ("i", "true"),
    ("i", "DATE'2024-01-01'"),
    ("i", "array(1)"),
    ("b", "300"),
    ("b", "'300'"),
    ("l", "1.9e30D"),
    ("d", "'2024-02-30'"),
    ("d", "5"),
    ("ts", "'2024-01-01 10:00:00'"),
    ("ts", "5L"),
    ("ntz", "TIMESTAMP'2024-01-01 10:00:00'"),
    ("bo", "'maybe'"),
    ("bo", "1"),
    ("de", "'12.345'"),
    ("de", "1234"),
    ("f", "'NaN'"),
    ("st", "X'4142'"),
    ("s", "named_struct('b', 7, 'a', '1')"),
    ("s", "named_struct('a', 1)"),
    ("s", "named_struct('a', 1, 'b', 'x', 'c', 1)"),
    ("s", "named_struct('a', NULL, 'b', NULL)"),
    ("s.a", "'q'"),
    ("arr", "array('1', '2')"),
    ("arr", "array('x')"),
    ("m", "map(1, '1')"),
    ("ars", "array(named_struct('b', 'x', 'a', '1'), NULL)"),
    ("nn.q", "NULL"),
    ("nn", "named_struct('z', '1', 'q', named_struct('a', '9'))"),
]

#: What Spark's own INSERT takes under a policy, and so do we, but delta-spark's UPDATE does not.
ONLY_OURS = {("STRICT", "ntz", "TIMESTAMP'2024-01-01 10:00:00'")}

#: What goes as in Spark's own INSERT: structs in lists by name, STRICT takes no more than it says.
INSERTED_OTHERWISE = {
    ("ANSI", "names", "ars", "array(named_struct('b', 'x', 'a', '1'), NULL)"),
    ("LEGACY", "names", "ars", "array(named_struct('b', 'x', 'a', '1'), NULL)"),
    ("STRICT", "names", "s", "named_struct('a', NULL, 'b', NULL)"),
    ("STRICT", "DataFrame", "s", "named_struct('a', NULL, 'b', NULL)"),
    ("STRICT", "places", "s", "named_struct('a', NULL, 'b', NULL)"),
    ("STRICT", "places", "s", "named_struct('b', 7, 'a', '1')"),
    ("STRICT", "places", "ts", "5L"),
    ("STRICT", "places", "ntz", "TIMESTAMP'2024-01-01 10:00:00'"),
    ("STRICT", "places", "st", "X'4142'"),
}

#: The value of the column after each assignment, or whether it was refused.
TRY = """
spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
result = []
for column, value in assigned:
    try:
        spark.sql(f"UPDATE {target} SET {column} = {value}")
        result.append(repr(spark.sql(f"SELECT {column} FROM {target}").collect()[0][0]))
    except Exception:
        result.append("refused")
spark.conf.unset("spark.sql.storeAssignmentPolicy")
"""


#: The same for rows of a statement or a DataFrame, by name and by position.
TRY_INSERTS = """
spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
def write(column, value, way):
    if way == "names":
        spark.sql(f"INSERT INTO {target} (id, {column}) VALUES (2, {value})")
    elif way == "places":
        values = [value if name == column else "NULL" for name in columns]
        spark.sql(f"INSERT INTO {target} SELECT 2, {', '.join(values)}")
    else:
        spark.sql(f"SELECT 2 AS id, {value} AS {column}").writeTo(target).append()

result = []
for column, value in assigned:
    try:
        write(column, value, way)
        rows = spark.sql(f"SELECT {column} FROM {target} WHERE id = 2").collect()
        result.append((column, value, repr(rows[0][0])))
        spark.sql(f"DELETE FROM {target} WHERE id = 2")
    except Exception:
        result.append((column, value, "refused"))
spark.conf.unset("spark.sql.storeAssignmentPolicy")
"""


@pytest.mark.parametrize("way", ["names", "places", "DataFrame"])
@pytest.mark.parametrize("policy", ["ANSI", "LEGACY", "STRICT"])
def test_inserts_store_what_delta_spark_stores(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, policy: str, way: str
) -> None:
    targets = [str(tmp_path / engine) for engine in ("ours", "theirs")]
    for path in targets:
        build_table(spark, path, SCHEMA, [[(1, *[None] * 15)]])
    arguments: dict[str, object] = {
        "policy": policy,
        "way": way,
        "assigned": [pair for pair in ASSIGNED if "." not in pair[0]],
        "columns": [field.name for field in spark.read.format("delta").load(targets[0]).schema][1:],
    }
    mine = {"spark": spark, "target": f"delta.`{targets[0]}`", **arguments}
    with session_settings(spark, {POLICY: policy}):
        exec(TRY_INSERTS, mine)
    theirs = delta_spark.run(TRY_INSERTS, target=f"delta.`{targets[1]}`", **arguments)
    ours: object = mine["result"]
    assert isinstance(ours, list)
    for found, peers in zip(ours, theirs, strict=True):
        column, value, _ = found
        if (policy, way, column, value) not in INSERTED_OTHERWISE:
            assert tuple(found) == tuple(peers)


@pytest.mark.parametrize("policy", ["ANSI", "LEGACY", "STRICT"])
def test_assignments_yield_what_delta_spark_yields(
    spark: SparkSession, delta_spark: SparkProcess, tmp_path: Path, policy: str
) -> None:
    assigned = [pair for pair in ASSIGNED if (policy, *pair) not in ONLY_OURS]
    targets = [str(tmp_path / engine) for engine in ("ours", "theirs")]
    for path in targets:
        build_table(spark, path, SCHEMA, [[(1, *[None] * 15)]])
    mine = {"spark": spark, "policy": policy, "assigned": assigned}
    mine["target"] = f"delta.`{targets[0]}`"
    with session_settings(spark, {POLICY: policy}):
        exec(TRY, mine)
    theirs = delta_spark.run(TRY, policy=policy, assigned=assigned, target=f"delta.`{targets[1]}`")
    result: object = mine["result"]
    assert isinstance(result, list)
    assert dict(zip(map(str, assigned), result, strict=True)) == dict(
        zip(map(str, assigned), theirs, strict=True)
    )
