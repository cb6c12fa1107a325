"""Round trips over the bridge to the JVM: each costs more than the decision that it is for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from py4j.clientserver import JavaClient

from deltaic.spark.committer import Committer
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.maintenance import await_maintenance, log_files
from tests.support.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def requests_of_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect what Python sends to the JVM while the JVM waits for a decision."""
    requests: list[str] = []
    deciding = threading.local()
    send = JavaClient.send_command

    def counted(self: JavaClient, command: str, *more: Any, **named: Any) -> Any:
        if getattr(deciding, "now", False):
            requests.append(command)
        return send(self, command, *more, **named)

    def watched(decide: Callable[..., str]) -> Callable[..., str]:
        def run(*arguments: Any) -> str:
            before = getattr(deciding, "now", False)
            deciding.now = True
            try:
                return decide(*arguments)
            finally:
                deciding.now = before

        return run

    with monkeypatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counted)
        for name in ("plan", "commit", "run"):
            patch.setattr(Committer, name, watched(getattr(Committer, name)))
        yield requests


def test_append_writes_and_starts_maintenance(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(2):  # Methods are looked up the first time.
        with requests_of_python(monkeypatch) as requests:
            spark.range(3).coalesce(1).write.format("delta").mode("append").save(table)
        assert log.newest(table) == version
    tried, followed = (command.split("\n") for command in requests)
    assert "tryCommit" in tried and "maintenance" in followed


def test_definition_is_committed_without_a_request(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = [
        f"CREATE TABLE delta.`{table}` (id INT, s STRING) USING delta",
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('team' = 'us')",
        f"ALTER TABLE delta.`{table}` ADD COLUMNS (n INT)",
    ]
    for version, statement in enumerate(statements):
        with requests_of_python(monkeypatch) as requests:
            spark.sql(statement)
        assert log.newest(table) == version
        assert requests == [], statement


def test_check_of_rows_is_the_request_of_a_constraint(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(3).write.format("delta").save(table)
    for version in (1, 2):  # Methods are looked up the first time.
        with requests_of_python(monkeypatch) as requests:
            spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT c{version} CHECK (id < 10)")
        assert log.newest(table) == version
    assert [request.split("\n")[2] for request in requests] == ["firstViolation"]


def test_lost_first_attempt_is_decided_by_python(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(3).write.format("delta").save(table)
    with (
        requests_of_python(monkeypatch) as requests,
        committed_meanwhile(
            lambda: spark.range(3, 5).write.format("delta").mode("append").save(table)
        ),
    ):
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('team' = 'us')")
    assert log.newest(table) == 2
    assert log.commit_info(table, 1)["operation"] == "WRITE"
    assert log.commit_info(table, 2)["operation"] == "SET TBLPROPERTIES"
    assert any("winningCommit" in request for request in requests)


def test_definitions_have_what_the_session_sets_and_their_maintenance(
    spark: SparkSession, table: str
) -> None:
    with session_settings(spark, {"spark.deltaic.commitInfo.userMetadata": "of the session"}):
        spark.sql(
            f"CREATE TABLE delta.`{table}` (id INT) USING delta "
            "TBLPROPERTIES ('delta.checkpointInterval' = '2')"
        )
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('team' = 'us')")
        with committed_meanwhile(
            lambda: (
                spark.range(3)
                .selectExpr("int(id) AS id")
                .write.format("delta")
                .mode("append")
                .save(table)
            )
        ):
            spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('team' = 'them')")
        spark.sql(f"ALTER TABLE delta.`{table}` UNSET TBLPROPERTIES ('team')")
    await_maintenance(spark)
    infos = [log.commit_info(table, version) for version in range(5)]
    assert [info["operation"] for info in infos] == [
        "CREATE TABLE",
        "SET TBLPROPERTIES",
        "WRITE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
    ]
    assert {info["userMetadata"] for info in infos} == {"of the session"}
    assert {info["isolationLevel"] for info in infos} == {"Serializable"}
    assert len(log_files(table, "*.crc")) == 5
    assert [file.name[:20] for file in log_files(table, "*.checkpoint*.parquet")] == [
        f"{version:020d}" for version in (2, 4)
    ]


def test_creation_that_lost_to_another_definition_is_refused(
    spark: SparkSession, table: str
) -> None:
    other = f"CREATE TABLE delta.`{table}` (x STRING) USING delta"
    with (
        pytest.raises(Exception, match="DELTAIC_CREATE_MISMATCH"),
        committed_meanwhile(lambda: spark.sql(other)),
    ):
        spark.sql(f"CREATE TABLE delta.`{table}` (id INT) USING delta")
    assert log.versions(table) == [0]
    assert spark.read.format("delta").load(table).columns == ["x"]


def test_option_without_a_value_is_not_set(spark: SparkSession, table: str) -> None:
    writer = spark.range(3).write.format("delta").option("comment", None)
    writer.option("delta.appendOnly", None).save(table)
    assert log.metadata(table)["configuration"].get("delta.appendOnly") is None
    assert spark.read.format("delta").load(table).count() == 3
