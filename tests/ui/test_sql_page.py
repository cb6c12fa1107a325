"""The page of a query in Spark's UI, as a browser shows it; its picture is in the guide."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess
from tests.support.spark_scripts import free_port

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
#: Checks the box that shows the metrics in the graph of the plan.
EXTENSION = Path(__file__).parent / "detailed_plan"
#: `make ui-picture` copies it into the guide.
PICTURE = ROOT / "build" / "ui" / "sql-page.png"

QUERY = """
t = f"delta.`{path}`"
spark.sql(f"CREATE TABLE {t} (id BIGINT, day DATE, amount DOUBLE) USING delta PARTITIONED BY (day)"
          " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
for day in range(1, 5):
    for part in range(3):
        rows = spark.range(part * 1000, (part + 1) * 1000, 1, 1)
        rows.selectExpr("id", f"DATE'2026-01-0{day}' AS day", "id * 0.5 AS amount").write.format(
            "delta").mode("append").save(path)
spark.sql(f"DELETE FROM {t} WHERE id % 100 = 7")
spark.sql(f"SELECT id FROM {t} WHERE day = '2026-01-02' AND id BETWEEN 1500 AND 2500").collect()
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
store = spark._jsparkSession.sharedState().statusStore()
result = store.executionsList().last().executionId()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a query that skips files and reads deletion vectors."""
    port = free_port()
    settings = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    with SparkProcess(settings, engine="deltaic") as spark:
        number = spark.run(QUERY, path=str(tmp_path_factory.mktemp("orders") / "orders"))
        yield f"http://127.0.0.1:{port}/SQL/execution/?id={number}"


def browse(profile: Path, page: str, *options: str) -> str:
    """Open a page in the browser without a window, and return what it prints."""
    if BROWSER is None:
        pytest.fail("there is no browser: install Chromium, such as Debian's package chromium")
    quiet = [
        "--headless",
        "--virtual-time-budget=10000",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
    ]
    detailed = f"--load-extension={EXTENSION}"
    offline = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command = [BROWSER, *quiet, *offline, detailed, f"--user-data-dir={profile}", *options, page]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_page_shows_what_the_scan_skipped_and_its_deletion_vectors(
    page: str, tmp_path: Path
) -> None:
    dom = browse(tmp_path, page, "--dump-dom")
    shown = " ".join(re.sub(r"<[^>]+>", " ", dom).split())
    for metric in (
        "number of files read 2",
        "number of files skipped by partition values 9",
        "number of files skipped by statistics 1",
        "number of deletion vectors of files read 2",
        "number of rows deleted by these vectors 20",
    ):
        assert metric in shown, shown[-6000:]


def test_picture_of_the_page_is_taken(page: str, tmp_path: Path) -> None:
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.unlink(missing_ok=True)
    browse(tmp_path, page, "--window-size=1000,1000", f"--screenshot={PICTURE}")
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size > 20_000
