"""VACUUM on an object store: directories are listed by prefix, objects are deleted in bulk."""

from __future__ import annotations

from tests.s3.conftest import Server
from tests.support.spark_process import SparkProcess

VERSIONS = 4
GARBAGE = 300

WRITE = """
spark.sql(
    f"CREATE TABLE delta.`{table}` (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p)"
)
for _ in range(versions):
    spark.sql(
        f"INSERT OVERWRITE delta.`{table}` SELECT id, id % 5 FROM range(0, 50, 1, 1)"
    )
path = spark._jvm.org.apache.hadoop.fs.Path(table)
files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
for n in range(garbage):
    name = f"p={n % 5}/deep/er/stray-{n}.parquet"
    files.create(spark._jvm.org.apache.hadoop.fs.Path(table, name)).close()
# Times of objects are in whole seconds.
import time
time.sleep(2.1)
"""

VACUUM = """
spark.conf.set("spark.deltaic.retentionDurationCheck.enabled", "false")
spark.sql(f"VACUUM delta.`{table}` {kind} RETAIN 0 HOURS").collect()
"""

STORED = """
path = spark._jvm.org.apache.hadoop.fs.Path(table)
files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
found = files.listFiles(path, True)
result = []
while found.hasNext():
    name = found.next().getPath().toString()
    if "_delta_log" not in name:
        result.append(name)
"""

LIVE = """
df = spark.read.format("delta").load(table)
rows = df.selectExpr("id", "_metadata.file_path AS file").collect()
result = [sorted(row.id for row in rows), sorted({row.file for row in rows})]
"""


def test_full_deletes_in_bulk_what_it_finds_by_prefix(
    server: Server, writers: list[SparkProcess]
) -> None:
    table = "s3a://bucket/vacuum"
    writers[0].run(WRITE, table=table, versions=VERSIONS, garbage=GARBAGE)
    unused = 5 * (VERSIONS - 1) + GARBAGE
    assert len(writers[1].run(STORED, table=table)) == unused + 5
    before = server.figures()
    writers[0].run(VACUUM, table=table, kind="FULL")
    after = server.figures()
    rows, live = writers[1].run(LIVE, table=table)
    assert rows == list(range(50))
    assert sorted(writers[1].run(STORED, table=table)) == live
    # The root, and each of the five directories in it with all that is below.
    assert after["listings"] - before["listings"] == 6
    # A request deletes up to 250 objects.
    assert after["bulk deletes"] - before["bulk deletes"] == 2
    assert after["deletes"] == before["deletes"]


def test_lite_deletes_what_commits_have_removed(
    server: Server, writers: list[SparkProcess]
) -> None:
    table = "s3a://bucket/vacuum-lite"
    writers[0].run(WRITE, table=table, versions=VERSIONS, garbage=1)
    before = server.figures()
    writers[0].run(VACUUM, table=table, kind="LITE")
    after = server.figures()
    stray = f"{table}/p=0/deep/er/stray-0.parquet"
    _, live = writers[1].run(LIVE, table=table)
    assert sorted(writers[1].run(STORED, table=table)) == sorted([*live, stray])
    assert after["bulk deletes"] - before["bulk deletes"] == 1
