"""`spark-sql` and the Thrift server, whose sessions have Hive support, change and read tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import log
from tests.support.hive import hive_settings
from tests.support.spark_scripts import (
    SPARK_HOME,
    free_port,
    output_of,
    spark_server,
    submit_options,
)

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"

#: A table with a generated column is changed in each way, by its name, its path and a view.
STATEMENTS = [
    "CREATE TABLE {t} (id INT, v STRING, g INT GENERATED ALWAYS AS (id * 10)) USING delta"
    " LOCATION '{path}' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO {t} (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "UPDATE {t} SET id = '7' WHERE id = 3",
    "MERGE INTO {t} t USING (SELECT 1 AS id, 'x' AS v UNION ALL SELECT 4, 'y') s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS id, 'z' AS v, 5 AS more) s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
    "DELETE FROM delta.`{path}` WHERE id = 1",
    "CREATE TEMPORARY VIEW shown AS SELECT * FROM {t}",
    "UPDATE shown SET v = 'w' WHERE id = 4",
]
#: What each asks for begins with a word of its own, by which its answer is found.
QUESTIONS = {
    "rows": (
        "SELECT 'rows', to_json(array_sort(collect_list(struct(id, v, g, more)))) FROM {t}",
        [
            {"id": 2, "v": "z", "g": 20, "more": 5},
            {"id": 4, "v": "w", "g": 40},
            {"id": 7, "v": "c", "g": 70},
        ],
    ),
    "version": (
        "SELECT 'version', to_json(array_sort(collect_list(id))) FROM {t} VERSION AS OF 1",
        [1, 2, 3],
    ),
    "function": (
        "SELECT 'function', to_json(array_sort(collect_list(id))) FROM table_changes('{t}', 6)"
        " WHERE _change_type = 'update_postimage'",
        [4],
    ),
    "options": (
        "SELECT 'options', to_json(array_sort(collect_list(id))) FROM"
        " (SELECT * FROM {t} WITH ('readChangeFeed' = 'true', 'startingVersion' = '6'))"
        " WHERE _change_type = 'update_preimage'",
        [4],
    ),
}

Run = Callable[[list[str]], str]


def options(folder: Path) -> list[str]:
    settings = {
        **hive_settings(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder / 'derby'}",
    }
    # The threads of the Thrift server see no jars of `--jars` when they load a catalog.
    return submit_options(settings, jar_option="--driver-class-path")


@pytest.fixture
def spark_sql(tmp_path: Path) -> Run:
    script = str(SPARK_HOME / "bin" / "spark-sql")

    def answers(statements: list[str]) -> str:
        return output_of([script, *options(tmp_path), "-e", ";\n".join(statements)], tmp_path)

    return answers


@pytest.fixture
def thrift_server(tmp_path: Path) -> Iterator[Run]:
    port = free_port()
    address = {"hive.server2.thrift.port": port, "hive.server2.thrift.bind.host": "127.0.0.1"}
    arguments = [a for name, value in address.items() for a in ("--hiveconf", f"{name}={value}")]
    with spark_server(SERVER, options(tmp_path), arguments, tmp_path, port):
        beeline = [
            str(SPARK_HOME / "bin" / "beeline"),
            "-u",
            f"jdbc:hive2://127.0.0.1:{port}/default",
            "-n",
            "tests",
            "--silent=true",
            "--outputformat=tsv2",
        ]

        def answers(statements: list[str]) -> str:
            script = tmp_path / "script.sql"
            script.write_text("".join(f"{statement};\n" for statement in statements))
            return output_of([*beeline, "-f", str(script)], tmp_path)

        yield answers


@pytest.mark.parametrize("client", ["spark_sql", "thrift_server"])
def test_client_with_hive_support_changes_and_reads_a_table(
    request: pytest.FixtureRequest, tmp_path: Path, client: str
) -> None:
    answers: Run = request.getfixturevalue(client)
    path = str(tmp_path / "table")
    statements = [*STATEMENTS, *(question for question, _ in QUESTIONS.values())]
    printed = answers([text.format(t="default.numbers", path=path) for text in statements])
    found = dict(
        line.split("\t") for line in printed.splitlines() if line.split("\t")[0] in QUESTIONS
    )
    expected = {word: rows for word, (_, rows) in QUESTIONS.items()}
    assert {word: json.loads(text) for word, text in found.items()} == expected, printed

    merge = log.commit_info(path, 3)
    assert json.loads(merge["operationParameters"]["predicate"]) != []
    assert "(id = id)" not in merge["operationParameters"]["predicate"]
    assert merge["operationMetrics"]["numSourceRows"] == "2"
