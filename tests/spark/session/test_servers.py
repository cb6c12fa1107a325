"""Spark's shells and servers: several clients, a metastore that outlives them, and their logs."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deltaic.session import delta_api_jar_path, jar_path
from tests.spark.session.test_hive_clients import SERVER, options
from tests.support import log
from tests.support.spark_scripts import (
    SPARK_HOME,
    free_port,
    output_of,
    run,
    spark_server,
    submit_options,
    user_environment,
)

#: Loggers of Spark, Hive and Hadoop that warn in every session of this kind, without Deltaic, too.
LOGGERS_OF_SPARK = {
    "HiveConf",
    "HiveExternalCatalog",
    "NativeCodeLoader",
    "ObjectStore",
    "SessionState",
    "Utils",
}


def warnings(printed: str) -> list[str]:
    """Return the lines at WARN and above, without those of Spark's own."""
    lines = re.findall(r"^.* (?:WARN|ERROR|FATAL) ([A-Za-z0-9_$.]+): .*$", printed, re.MULTILINE)
    return [logger for logger in lines if logger.rpartition(".")[2] not in LOGGERS_OF_SPARK]


def spark_sql(
    folder: Path, *statements: str, level: str = "ERROR"
) -> subprocess.CompletedProcess[str]:
    command = [str(SPARK_HOME / "bin" / "spark-sql"), *options(folder)]
    chosen = ["--conf", f"spark.log.level={level}"]
    done = run([*command, *chosen, "-e", ";\n".join(statements)], folder)
    assert done.returncode == 0, done.stderr[-8000:]
    return done


def test_two_clients_of_the_thrift_server_change_one_table(tmp_path: Path) -> None:
    port = free_port()
    arguments = [
        "--hiveconf",
        f"hive.server2.thrift.port={port}",
        "--hiveconf",
        "hive.server2.thrift.bind.host=127.0.0.1",
    ]

    def client(name: str, *statements: str) -> str:
        script = tmp_path / f"{name}.sql"
        script.write_text("".join(f"{statement};\n" for statement in statements))
        address = f"jdbc:hive2://127.0.0.1:{port}/default"
        beeline = [str(SPARK_HOME / "bin" / "beeline"), "-u", address, "-n", name]
        return output_of(
            [*beeline, "--silent=true", "--outputformat=tsv2", "-f", str(script)], tmp_path
        )

    def changes(first: int) -> list[str]:
        ids = range(first, first + 5)
        return [
            *(f"UPDATE numbers SET v = v + 1 WHERE id = {i}" for i in ids),
            f"DELETE FROM numbers WHERE id = {first + 5}",
            f"INSERT INTO numbers VALUES ({first + 100}, 0)",
        ]

    with spark_server(SERVER, options(tmp_path), arguments, tmp_path, port):
        client(
            "setup",
            "CREATE TABLE numbers USING delta"
            " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
            " 'delta.enableRowTracking' = 'true')"
            " AS SELECT CAST(id AS INT) AS id, 0 AS v FROM range(0, 20, 1, 1)",
        )
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(client, n, *changes(f)) for n, f in (("one", 0), ("other", 10))]
            assert all(done.result() is not None for done in both)
        counted = client("count", "SELECT 'found', count(*), sum(v), sum(id) FROM numbers")
    expected = sum(set(range(20)) - {5, 15}) + 100 + 110
    assert f"found\t20\t10\t{expected}" in counted


def test_spark_shell_uses_the_api_of_delta_spark(tmp_path: Path) -> None:
    jars = f"{jar_path()},{delta_api_jar_path()}"
    shell = [str(SPARK_HOME / "bin" / "spark-shell"), *submit_options({"spark.jars": jars})]
    program = f"""
import io.delta.implicits._
import io.delta.tables.DeltaTable
spark.range(10).write.delta("{tmp_path}/t")
val table = DeltaTable.forPath("{tmp_path}/t")
table.delete("id >= 7")
println("rows left: " + table.toDF.count())
println("operation: " + table.history(1).head.getAs[String]("operation"))
"""
    done = subprocess.run(
        shell,
        input=program,
        cwd=tmp_path,
        env=user_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "rows left: 7" in done.stdout, done.stderr[-4000:]
    assert "operation: DELETE" in done.stdout


def test_metastore_outlives_the_process_that_created_a_table(tmp_path: Path) -> None:
    spark_sql(
        tmp_path,
        "CREATE DATABASE sales",
        "CREATE TABLE sales.orders (id INT, v STRING) USING delta",
        "INSERT INTO sales.orders VALUES (1, 'a'), (2, 'b')",
    )
    later = spark_sql(
        tmp_path,
        "ALTER TABLE sales.orders ADD COLUMN more INT",
        "UPDATE sales.orders SET more = 5 WHERE id = 2",
        "SELECT 'found', * FROM sales.orders ORDER BY id",
        "SELECT 'then', count(*) FROM sales.orders VERSION AS OF 0",
    )
    assert "found\t1\ta\tNULL\nfound\t2\tb\t5\nthen\t0\n" in later.stdout
    assert log.newest(tmp_path / "warehouse" / "sales.db" / "orders") == 3


def test_statements_that_succeed_log_no_warning(tmp_path: Path) -> None:
    done = spark_sql(
        tmp_path,
        "CREATE TABLE t (id INT, day DATE, g INT GENERATED ALWAYS AS (id * 2)) USING delta"
        " PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO t (id, day) VALUES (1, DATE'2026-01-01'), (2, DATE'2026-01-02')",
        "DELETE FROM t WHERE id = 1",
        "MERGE INTO t USING (SELECT 2 AS id, DATE'2026-01-02' AS day) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = 3",
        "SELECT * FROM table_changes('t', 0)",
        "ALTER TABLE t ADD COLUMN more STRING",
        "OPTIMIZE t",
        "VACUUM t",
        "RESTORE TABLE t TO VERSION AS OF 1",
        "DESCRIBE HISTORY t",
        "SELECT count(*) FROM t WHERE day = DATE'2026-01-02'",
        "CREATE TABLE c SHALLOW CLONE t",
        "DROP TABLE t",
        level="WARN",
    )
    assert warnings("x 26/11/28 WARN DeltaLog: m") == ["DeltaLog"]
    assert warnings(done.stderr) == [], done.stderr[-6000:]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("SELECT * FROM delta.`/no/such/table`", "[DELTAIC_NOT_A_TABLE]"),
        ("VACUUM no_such", "[TABLE_OR_VIEW_NOT_FOUND]"),
    ],
)
def test_statement_that_fails_prints_its_error_and_no_warning(
    tmp_path: Path, statement: str, condition: str
) -> None:
    command = [str(SPARK_HOME / "bin" / "spark-sql"), *options(tmp_path)]
    done = run([*command, "--conf", "spark.log.level=WARN", "-e", statement], tmp_path)
    assert done.returncode != 0
    assert condition in done.stderr, done.stderr[-6000:]
    assert set(warnings(done.stderr)) <= {"SparkSQLDriver"}, done.stderr[-6000:]
