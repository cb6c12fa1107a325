"""Tables that other engines wrote show the recorded rows, or are refused for a known reason.

The corpus provides its own checker, which runs every item in one session; see its README. Here each
table is a test of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaic.tables import DeltaTable
from tests.support.expected_gaps import MISSING_KINDS, REFUSED_TABLES
from tests.support.paths import ROOT, shared_folder
from tests.support.spark_process import FOREIGN_VARIABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = "DELTAIC_UNSUPPORTED_READER_FEATURE"

#: Our conditions for each that was recorded of delta-spark, or of Spark below it. The corpus's own
#: checker takes any error for an expected one, whatever has gone wrong.
OUR_CONDITIONS = {
    "DELTA_INVALID_PROTOCOL_VERSION": {"DELTAIC_UNSUPPORTED_READER_VERSION"},
    "DELTA_LOG_FILE_NOT_FOUND": {"DELTAIC_VERSION_NOT_FOUND"},
    # Tables without columns are read, but the files that these logs name have never been there.
    "DELTA_READ_TABLE_WITHOUT_COLUMNS": {"DELTAIC_DATA_FILE_MISSING"},
    "DELTA_STATE_RECOVER_ERROR": {
        "DELTAIC_DATA_FILE_MISSING",
        "DELTAIC_STATE_WITHOUT_METADATA",
        "DELTAIC_STATE_WITHOUT_PROTOCOL",
    },
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": {"DELTAIC_TIMESTAMP_BEFORE_EARLIEST"},
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION": {
        "DELTAIC_VERSION_BEYOND_FILE_RETENTION"
    },
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ": {"DELTAIC_UNSUPPORTED_READER_FEATURE"},
    "DELTA_VERSIONS_NOT_CONTIGUOUS": {"DELTAIC_LOG_GAP"},
    "DELTA_VERSION_NOT_FOUND": {"DELTAIC_VERSION_NOT_FOUND"},
    "FAILED_READ_FILE.FILE_NOT_EXIST": {"DELTAIC_DATA_FILE_MISSING"},
}

#: Items whose error says something else than that of delta-spark: what was recorded, and ours.
FURTHER = {
    # The log has the VACUUM that deleted the file: its retention was 0 hours.
    ("dat__no_replay", "versionAsOf 2"): (
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        "DELTAIC_VERSION_VACUUMED",
    ),
    # delta-spark refuses the others before it looks at what we look at, and then find wrong. Their
    # files are not in the corpus: delta-rs misses them, too.
    # An old version, which needs no feature, is read; delta-spark loads the latest one first.
    ("deltars__err_table_h", "versionAsOf 13"): (
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "DELTAIC_DATA_FILE_MISSING",
    ),
    ("deltars__err_table_i", "versionAsOf 13"): (
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "DELTAIC_DATA_FILE_MISSING",
    ),
    # A checkpoint is enough to read its version; delta-spark wants the commit beside it, and fails
    # with an IllegalStateException, which has no condition.
    ("deltars__table-with-domain-metadata", "latest version"): (
        "Py4JJavaError",
        "DELTAIC_DATA_FILE_MISSING",
    ),
}

#: What we show of a table although delta-spark refuses it, by kind of item; that it is true, tests
#: of their own show. A history is a list of commit files, and a description what the log says.
ANSWERED = {
    "history": {
        "DELTA_INVALID_PROTOCOL_VERSION",
        "DELTA_STATE_RECOVER_ERROR",
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "DELTA_VERSIONS_NOT_CONTIGUOUS",
    },
    "detail": {"DELTA_INVALID_PROTOCOL_VERSION", "DELTA_UNSUPPORTED_FEATURES_FOR_READ"},
}
_ANSWERED = re.compile(r"no error; expected ([^\s:]+):")

#: What the checker notes of an error of ours where delta-spark's was another.
_ERRORS_DIFFER = re.compile(r"error differs: expected (\S+), got ([^\s:]+):")


def table_names() -> list[str]:
    shared = shared_folder()
    if shared is None:
        return []
    return sorted(path.stem for path in Path(shared, "tables", "expected").glob("*.json"))


@pytest.fixture(scope="session")
def checked(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the corpus's checker, run on a copy: it sets files' modification times."""
    corpus = tmp_path_factory.mktemp("conformance") / "tables"
    shutil.copytree(shared / "tables", corpus)
    report = corpus / "report.json"
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    environment |= {
        "ENGINE_SESSION": "tests.support.conformance_session:session",
        "ENGINE_PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, str(corpus / "check.py"), "--report", str(report)],
        env=environment,
        cwd=corpus,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.is_file(), done.stdout[-4000:] + done.stderr[-4000:]
    found: dict[str, Any] = json.loads(report.read_text())
    assert found["corpus_files_changed"] == [], "reading has changed files"
    assert found["worker_restarts"] == 0, "the session died and was started again"
    return found["tables"]  # type: ignore[no-any-return]


@pytest.mark.protocol("dv-action-reconciliation-changes-2", "dv-functional-1", "table-features-5")
@pytest.mark.parametrize("table", table_names())
def test_table_shows_the_recorded_rows_or_is_refused_by_name(
    checked: dict[str, Any], table: str
) -> None:
    refused = False
    for check in checked[table]["checks"]:
        what, reason = f"{check['kind']}: {check['what']}", check["reason"] or ""
        failed = check["status"] not in ("PASS", "EXPECTED-ERROR")
        missing = MISSING_KINDS.get(check["kind"])
        if failed and table in REFUSED_TABLES and REFUSED in reason:
            assert f"cannot read: {REFUSED_TABLES[table]}." in reason, f"{what}: {reason}"
            refused = True
        elif failed and (found := _ANSWERED.match(reason)):
            assert found[1] in ANSWERED.get(check["kind"], ()), f"{what}: {reason}"
        elif failed:
            assert missing is not None, f"{what}: {reason}"
            assert missing in reason, f"{what} fails for another reason: {reason}"
        elif check["status"] == "PASS":
            assert missing is None, f"{what} passes now: take it off tests/support/expected_gaps.py"
    assert refused == (table in REFUSED_TABLES), "the table is no longer refused"


@pytest.mark.protocol("protocol-evolution-1")
@pytest.mark.parametrize("table", table_names())
def test_errors_are_those_that_say_what_is_wrong(checked: dict[str, Any], table: str) -> None:
    for check in checked[table]["checks"]:
        if check["status"] == "EXPECTED-ERROR":
            [note] = check["notes"]
            found = _ERRORS_DIFFER.match(note)
            assert found is not None, f"{check['what']}: {note}"
            recorded, ours = found.groups()
            if (table, check["what"]) in FURTHER:
                assert (recorded, ours) == FURTHER[table, check["what"]], note
            else:
                assert ours in OUR_CONDITIONS.get(recorded, ()), f"{check['what']}: {note}"


def test_corpus_is_the_one_that_the_list_of_missing_features_is_about(
    shared: Path, checked: dict[str, Any]
) -> None:
    assert len(checked) == len(table_names()) > 100
    assert set(REFUSED_TABLES) <= set(checked)


@pytest.mark.parametrize("table", table_names())
def test_every_item_of_a_table_is_checked(
    shared: Path, checked: dict[str, Any], table: str
) -> None:
    items = json.loads((shared / "tables" / "expected" / f"{table}.json").read_text())["items"]
    done = [(check["kind"], check["what"]) for check in checked[table]["checks"]]
    assert done == [(item["kind"], item["what"]) for item in items]


def test_histories_list_every_commit_file(spark: SparkSession, shared: Path) -> None:
    for table in table_names():
        path = shared / "tables" / "tables" / table
        files = [int(f.stem) for f in (path / "_delta_log").glob("*.json") if f.stem.isdigit()]
        if not files:
            continue
        history = DeltaTable.forPath(spark, str(path)).history().collect()
        assert [row.version for row in history] == sorted(files, reverse=True), table


def test_descriptions_of_tables_that_cannot_be_read_say_what_the_log_says(
    spark: SparkSession, shared: Path
) -> None:
    described = 0
    for table in table_names():
        items = json.loads((shared / "tables" / "expected" / f"{table}.json").read_text())["items"]
        expected = [item["expect"] for item in items if item["kind"] == "detail"]
        if all(e["ok"] or e["error"]["condition"] not in ANSWERED["detail"] for e in expected):
            continue
        path = shared / "tables" / "tables" / table
        row = DeltaTable.forPath(spark, str(path)).detail().first()
        assert row is not None
        actions = [
            json.loads(line)
            for file in sorted((path / "_delta_log").glob("*.json"))
            for line in file.read_text().splitlines()
        ]
        protocol = [a["protocol"] for a in actions if "protocol" in a][-1]
        metadata = [a["metaData"] for a in actions if "metaData" in a][-1]
        assert row.minReaderVersion == protocol["minReaderVersion"], table
        assert row.minWriterVersion == protocol["minWriterVersion"], table
        assert set(protocol.get("readerFeatures", ())) <= set(row.tableFeatures), table
        assert (row.id, row.properties) == (metadata["id"], metadata["configuration"]), table
        described += 1
    assert described > 3
