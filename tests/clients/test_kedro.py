"""kedro's datasets, in a session with our jar and without our package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deltaic.session import spark_settings
from tests.support import log
from tests.support.spark_process import SparkProcess


@pytest.fixture(scope="module")
def kedro(client_python: str) -> Iterator[SparkProcess]:
    with SparkProcess(spark_settings(), python=client_python) as process:
        yield process


def test_spark_dataset_of_format_delta_is_saved_found_and_loaded(
    kedro: SparkProcess, tmp_path: Path
) -> None:
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
    assert kedro.run(code, path=path) == [False, True, 5, True, 3]
    assert log.versions(path) == [0, 1]


@pytest.mark.parametrize("kind", ["SparkDataset", "DeltaTableDataset"])
def test_dataset_of_a_missing_table_does_not_exist(
    kedro: SparkProcess, tmp_path: Path, kind: str
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
    (tmp_path / "table" / "empty").mkdir(parents=True)
    assert kedro.run(code, path=str(path), kind=kind) == [False, False, True]
