"""The classes of a first query are loaded as soon as the session is there, before any query."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.spark_process import SparkProcess

CLASSES = ("io.deltaic.spark.scan.vectorized.BatchReader", "org.codehaus.janino.UnitCompiler")
SOON_S = 60
THREADS = "result = [t.getName() for t in spark._jvm.Thread.getAllStackTraces().keySet()]"


@pytest.mark.parametrize("wanted", [True, False])
def test_classes_are_there_before_the_first_query(tmp_path: Path, wanted: bool) -> None:
    log = tmp_path / "classes.log"
    settings = {
        "spark.driver.extraJavaOptions": f"-Xlog:class+load:file={log}",
        "spark.deltaic.firstQuery.loadClasses": str(wanted).lower(),
    }
    with SparkProcess(settings, engine="deltaic", master="local[1]") as process:
        deadline = time.monotonic() + SOON_S
        while "deltaic-first-query-classes" in process.run(THREADS):
            assert time.monotonic() < deadline, "classes are still being loaded"
            time.sleep(0.1)
        loaded = log.read_text()
        assert [f" {name} source: " in loaded for name in CLASSES] == [wanted] * len(CLASSES)
