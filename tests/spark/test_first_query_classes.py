"""The classes of a first query are loaded as soon as the session is there, before any query."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.spark_process import SparkProcess

CLASSES = ("io.deltaic.spark.scan.BatchReader", "org.codehaus.janino.UnitCompiler")
SOON_S = 60
LATER_S = 5


@pytest.mark.parametrize("wanted", [True, False])
def test_classes_are_there_before_the_first_query(tmp_path: Path, wanted: bool) -> None:
    log = tmp_path / "classes.log"
    settings = {
        "spark.driver.extraJavaOptions": f"-Xlog:class+load:file={log}",
        "spark.deltaic.firstQuery.loadClasses": str(wanted).lower(),
    }
    with SparkProcess(settings, engine="deltaic", master="local[1]") as process:
        process.run("result = spark.version")
        deadline = time.monotonic() + (SOON_S if wanted else LATER_S)
        while not are_loaded(log) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert are_loaded(log) == wanted


def are_loaded(log: Path) -> bool:
    text = log.read_text()
    return all(f" {name} source: " in text for name in CLASSES)
