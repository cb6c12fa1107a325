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
            deciding.now = True
            try:
                return decide(*arguments)
            finally:
                deciding.now = False

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
    with requests_of_python(monkeypatch) as requests:
        spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT c CHECK (id < 10)")
    assert log.newest(table) == 1
    assert {"firstViolation"} == {
        line for request in requests for line in request.split("\n") if line == "firstViolation"
    }
    assert not any("tryCommit" in request for request in requests)


def test_lost_first_attempt_is_decided_by_python(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.interleave import committed_meanwhile

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
    assert any("winner" in request for request in requests)
