"""Writing where no Python drives Spark: the JVM starts one to commit, or says what to set."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.support import log
from tests.support.spark_scripts import (
    SPARK_HOME,
    compile_scala,
    run,
    submit_options,
    user_environment,
)

PROGRAM = Path(__file__).parent / "programs" / "StatementLoop.scala"
NO_PYTHON = "DELTAIC_PYTHON_UNAVAILABLE"


def environment() -> dict[str, str]:
    """As in a user's shell, without any hint at which Python to use."""
    return user_environment(python=None)


def options(python: str) -> list[str]:
    return submit_options({"spark.pyspark.python": python})


def spark_sql(folder: Path, python: str, *statements: str) -> subprocess.CompletedProcess[str]:
    """Run the script `spark-sql` of the Spark distribution; an error does not end it."""
    command = [
        str(SPARK_HOME / "bin" / "spark-sql"),
        *options(python),
        "--conf",
        f"spark.sql.warehouse.dir={folder / 'warehouse'}",
        "--hiveconf",
        "hive.cli.errors.ignore=true",
        "-e",
        ";\n".join(statements),
    ]
    return run(command, folder, environment())


class StatementLoop:
    """The Scala program, running."""

    def __init__(self, program: Path, folder: Path, python: str) -> None:
        self._errors = (folder / "stderr.log").open("w")
        self.process = subprocess.Popen(
            [
                str(SPARK_HOME / "bin" / "spark-submit"),
                "--class",
                "StatementLoop",
                *options(python),
                str(program),
            ],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._until("READY")

    def run(self, line: str) -> list[str]:
        """Return the rows that a statement prints, each as text; an error fails the test."""
        printed = self._ask(line)
        assert not [text for text in printed if text.startswith("ERROR")], printed
        return [text.removeprefix("ROW ") for text in printed if text.startswith("ROW ")]

    def error(self, line: str) -> str:
        [text] = [text for text in self._ask(line) if text.startswith("ERROR")]
        return text

    def committer_processes(self) -> list[int]:
        # Each is a process id and a command line; one that is just ending has none.
        children = [child.partition(" ") for child in self.run("!children")]
        return [
            int(pid) for pid, _, command in children if "deltaic.spark.committer_process" in command
        ]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._errors.close()

    def _ask(self, line: str) -> list[str]:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._until("END")

    def _until(self, mark: str) -> list[str]:
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            if line.rstrip() == mark:
                return lines
            lines.append(line.rstrip())
        raise AssertionError(f"the program ended: {Path(self._errors.name).read_text()[-3000:]}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Scala program, compiled."""
    return compile_scala(PROGRAM, tmp_path_factory.mktemp("program") / "program.jar")


@pytest.fixture
def loop(program: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StatementLoop]:
    started = StatementLoop(program, tmp_path, getattr(request, "param", sys.executable))
    yield started
    started.close()


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while alive := [pid for pid in pids if Path("/proc", str(pid)).exists()]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.1)


def files_below(folder: Path) -> set[Path]:
    """Return all files, but not those that follow an earlier commit in the background."""
    found = (path for path in folder.rglob("*") if not path.name.endswith((".crc", ".tmp")))
    return {path for path in found if path.is_file()}


def test_spark_sql_creates_inserts_deletes_and_describes(tmp_path: Path) -> None:
    at_path = tmp_path / "at_path"
    # The script runs in this folder, whose files are not those that the jar provides.
    (tmp_path / "deltaic").mkdir()
    (tmp_path / "deltaic" / "__init__.py").write_text("raise RuntimeError('somebody else')")
    done = spark_sql(
        tmp_path,
        sys.executable,
        "CREATE TABLE t (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO t SELECT id, if(id < 5, 'a', 'b') FROM range(10)",
        "DELETE FROM t WHERE id IN (3, 7)",
        "SELECT concat('left ', count(*), ' ', sum(id)) FROM t",
        f"CREATE TABLE delta.`{at_path}` USING delta AS SELECT id FROM t WHERE id > 4",
        f"DELETE FROM delta.`{at_path}` WHERE id = 5",
        f"SELECT concat('at path ', count(*), ' ', sum(id)) FROM delta.`{at_path}`",
        "DESCRIBE HISTORY t LIMIT 1",
        f"DESCRIBE DETAIL '{at_path}'",
    )
    assert done.returncode == 0, done.stderr
    described = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    assert [line[0] for line in described if line[4:5] == ["DELETE"]] == ["2"], done.stdout
    assert [line[4] for line in described if line[0] == "delta"] == [f"file:{at_path}"]
    assert "left 8 35" in done.stdout.splitlines(), done.stderr
    assert "at path 3 23" in done.stdout.splitlines(), done.stderr
    table = tmp_path / "warehouse" / "t"
    assert [add["deletionVector"]["cardinality"] for add in log.actions(table, 2, "add")] == [1, 1]
    [info] = log.actions(table, 2, "commitInfo")
    assert info["operation"] == "DELETE"


def test_scala_program_writes_and_its_committer_process_is_replaced_when_it_dies_and_ends_with_it(
    loop: StatementLoop, table: str
) -> None:
    assert loop.committer_processes() == [], "a Python was started before any commit"
    loop.run(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    loop.run(f"!append {table} 0 10")
    loop.run(f"INSERT INTO delta.`{table}` VALUES (100)")
    [process] = loop.committer_processes()
    loop.run(f"DELETE FROM delta.`{table}` WHERE id > 2 AND id < 8")
    assert loop.committer_processes() == [process], "more than one committer process for a JVM"
    os.kill(process, signal.SIGKILL)
    wait_until_gone([process])
    loop.run(f"DELETE FROM delta.`{table}` WHERE id = 8")
    assert loop.run(f"SELECT id FROM delta.`{table}` ORDER BY id") == ["0", "1", "2", "9", "100"]
    assert log.versions(table) == [0, 1, 2, 3, 4]
    kinds = [add["deletionVector"]["storageType"] for add in log.actions(table, 4, "add")]
    assert kinds == ["i"]
    [next_process] = loop.committer_processes()
    loop.end()
    wait_until_gone([next_process])


def test_committer_process_ends_when_the_jvm_is_killed(loop: StatementLoop, table: str) -> None:
    loop.run(f"!append {table} 0 10")
    [process] = loop.committer_processes()
    loop.process.kill()
    loop.process.wait()
    wait_until_gone([process])


@pytest.fixture
def existing(spark: pyspark.sql.SparkSession, tmp_path: Path) -> Path:
    path = tmp_path / "data" / "existing"
    spark.range(10).coalesce(1).write.format("delta").option(
        "delta.enableDeletionVectors", "true"
    ).save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    return path


def refused_statements(existing: Path, absent: Path) -> list[str]:
    return [
        f"INSERT INTO delta.`{existing}` VALUES (11)",
        f"INSERT OVERWRITE delta.`{existing}` VALUES (11)",
        f"DELETE FROM delta.`{existing}` WHERE id = 5",
        f"UPDATE delta.`{existing}` SET id = 0 WHERE id = 5",
        f"CREATE TABLE delta.`{absent}` (id BIGINT) USING delta",
        f"CREATE TABLE delta.`{absent}` USING delta AS SELECT 1 AS id",
    ]


@pytest.mark.parametrize("loop", ["/nonexistent"], indirect=True)
def test_without_python_a_scala_program_reads_and_cannot_write_a_file(
    loop: StatementLoop, existing: Path
) -> None:
    data, absent = existing.parent, existing.parent / "absent"
    before = files_below(data)
    statements = [*refused_statements(existing, absent), f"!append {existing} 0 5"]
    for statement in statements:
        message = loop.error(statement)
        assert NO_PYTHON in message, statement
        assert "/nonexistent" in message
        assert "spark.pyspark.python" in message
    assert files_below(data) == before
    assert not absent.exists()
    assert loop.run(f"SELECT count(*), sum(id) FROM delta.`{existing}`") == ["9,42"]
    assert loop.run(f"SELECT count(*) FROM delta.`{existing}` VERSION AS OF 0") == ["10"]


def test_without_python_spark_sql_reads_and_cannot_write_a_file(
    existing: Path, tmp_path: Path
) -> None:
    data, absent = existing.parent, existing.parent / "absent"
    before = files_below(data)
    refused = refused_statements(existing, absent)
    done = spark_sql(
        tmp_path,
        "/nonexistent",
        *refused,
        "CREATE TABLE t (id BIGINT) USING delta",
        f"SELECT concat('read ', count(*), ' ', sum(id)) FROM delta.`{existing}`",
    )
    assert "read 9 42" in done.stdout.splitlines(), done.stderr
    assert done.stderr.count(f"[{NO_PYTHON}]") >= len(refused) + 1, done.stderr
    assert files_below(data) == before
    assert not absent.exists()
    warehouse = tmp_path / "warehouse"
    assert not warehouse.exists() or not files_below(warehouse)
    shutil.rmtree(tmp_path / "metastore_db", ignore_errors=True)
