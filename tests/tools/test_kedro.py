"""kedro's datasets, whose ``delta`` is that of Deltaic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deltaic.session import spark_settings
from tests.support import log
from tests.support.spark_process import SparkProcess

#: A pipeline with two nodes: one writes rows, the other changes them as a `DeltaTable`.
PIPELINE = """
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import node, pipeline
from kedro.runner import SequentialRunner
from kedro_datasets.spark import DeltaTableDataset, SparkDataset

def clean(rows):
    return rows.dropDuplicates(["id"])

def upsert(written, table, new):
    merge = table.alias("t").merge(new.alias("n"), "t.id = n.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    return True

frame = lambda rows: spark.createDataFrame(rows, "id INT, status STRING")
catalog = DataCatalog({
    "raw": MemoryDataset(frame([[1, "open"], [1, "open"], [2, "open"]]), copy_mode="assign"),
    "new": MemoryDataset(frame([[2, "paid"], [3, "open"]]), copy_mode="assign"),
    "orders": SparkDataset(filepath=path, file_format="delta", save_args={"mode": "overwrite"}),
    "table": DeltaTableDataset(filepath=path),
})
SequentialRunner().run(pipeline([node(clean, "raw", "orders")]), catalog)
SequentialRunner().run(pipeline([node(upsert, ["orders", "table", "new"], "done")]), catalog)
result = sorted(list(row) for row in catalog.load("orders").collect())
"""

#: `SparkStreamingDataset.load` gives the source a schema, which no engine accepts for Delta tables.
STREAM = """
from kedro_datasets.spark import SparkStreamingDataset

spark.range(5).write.format("delta").save(path)
arguments = {"output_mode": "append", "checkpoint": path + "/../checkpoint"}
target = SparkStreamingDataset(filepath=path + "2", file_format="delta", save_args=arguments)
target.save(spark.readStream.format("delta").load(path))
for query in spark.streams.active:
    query.processAllAvailable()
    query.stop()
result = spark.read.format("delta").load(path + "2").count()
"""


@pytest.fixture
def jar_only(tools_python: str) -> Iterator[SparkProcess]:
    """A session with our jar, and without our package and any package ``delta``."""
    with SparkProcess(spark_settings(), python=tools_python) as process:
        yield process


def test_spark_dataset_needs_nothing_but_the_jar(jar_only: SparkProcess, tmp_path: Path) -> None:
    code = """
from kedro_datasets.spark import SparkDataset

dataset = SparkDataset(filepath=path, file_format="delta", save_args={"mode": "append"})
result = [dataset.exists()]
dataset.save(spark.range(3))
dataset.save(spark.range(2))
result += [dataset.exists(), dataset.load().count()]
past = SparkDataset(filepath=path, file_format="delta", load_args={"versionAsOf": 0})
result += [past.exists(), past.load().count()]
"""
    path = str(tmp_path / "table")
    assert jar_only.run(code, path=path) == [False, True, 5, True, 3]
    assert log.versions(path) == [0, 1]


def test_pipeline_merges_into_the_table_that_it_wrote(tools: SparkProcess, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    assert tools.run(PIPELINE, path=path) == [[1, "open"], [2, "paid"], [3, "open"]]
    operations = [log.commit_info(path, version)["operation"] for version in log.versions(path)]
    assert operations == ["WRITE", "MERGE"]


def test_stream_is_saved_into_a_dataset(tools: SparkProcess, tmp_path: Path) -> None:
    assert tools.run(STREAM, path=str(tmp_path / "table")) == 5


@pytest.mark.parametrize("kind", ["SparkDataset", "DeltaTableDataset"])
def test_dataset_of_a_missing_table_does_not_exist(
    tools: SparkProcess, tmp_path: Path, kind: str
) -> None:
    code = """
from kedro_datasets import spark as datasets

arguments = {"file_format": "delta"} if kind == "SparkDataset" else {}
dataset = lambda path: getattr(datasets, kind)(filepath=path, **arguments)
result = [dataset(path).exists(), dataset(path + "/empty").exists()]
spark.range(3).write.format("delta").save(path)
result.append(dataset(path).exists())
"""
    path = tmp_path / "table"
    (path / "empty").mkdir(parents=True)
    assert tools.run(code, path=str(path), kind=kind) == [False, False, True]
