"""Errors of a server arrive in clients as the classes of Deltaic, of PySpark and of delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from deltaic import exceptions
from tests.support import log
from tests.support.connect import PLUGINS, PLUGINS_OF_DELTA_SPARK, connect_server
from tests.support.paths import JAR
from tests.support.spark_process import SparkProcess

FAILED = """
result = None
try:
    exec(statement)
except Exception as e:
    ours = [kind.__name__ for kind in type(e).__mro__ if kind.__module__ == "deltaic.exceptions"]
    result = dict(
        ours=ours, error=type(e).__name__, condition=e.getCondition(), state=e.getSqlState(),
        message=str(e), spark=[kind.__name__ for kind in type(e).__mro__
                               if kind.__module__.startswith("pyspark.errors")],
    )
"""

TABLE = """
from deltaic.tables import DeltaTable
from pyspark.sql.functions import col
properties = {"delta.appendOnly": "true"}
spark.range(10).write.format("delta").options(**properties).save(path)
table = DeltaTable.forPath(spark, path)
"""


def failed(client: SparkProcess, path: Path, statement: str) -> dict[str, Any]:
    found: dict[str, Any] | None = client.run(TABLE + FAILED, path=str(path), statement=statement)
    assert found is not None, "nothing failed"
    return found


@pytest.mark.parametrize(
    ("statement", "ours", "pyspark", "condition"),
    [
        ("DeltaTable.forPath(spark, path + '/x')", "TableStateError", "Analysis", "NOT_A_TABLE"),
        ("table.delete('id = 1')", "TableStateError", "UnsupportedOperation", "APPEND_ONLY"),
        ("table.restoreToVersion(7)", "TableStateError", "Analysis", "VERSION_NOT_FOUND"),
        (
            "table.vacuum(0)",
            "InvalidArgumentError",
            "IllegalArgument",
            "VACUUM_RETENTION_TOO_SHORT",
        ),
        ("table.addFeatureSupport('x')", "InvalidArgumentError", "", "UNKNOWN_FEATURE"),
        ("table.dropFeatureSupport('x')", "InvalidArgumentError", "", ""),
        ("table.setDomainMetadata('a', 'b')", "ProtocolError", "", "DOMAIN_METADATA_UNSUPPORTED"),
        ("table.upgradeTableProtocol(9, 9)", "InvalidArgumentError", "", ""),
        ("table.generate('hive')", "InvalidArgumentError", "", ""),
        ("table.delete(3)", "ArgumentTypeError", "", "INVALID_ARGUMENT_TYPE"),
        ("table.merge(3, 'true')", "ArgumentTypeError", "", "INVALID_ARGUMENT_TYPE"),
        ("spark.sql(f'DELETE FROM delta.`{path}`')", "TableStateError", "", "APPEND_ONLY"),
        (
            "spark.read.format('delta').option('versionAsOf', 9).load(path).collect()",
            "TableStateError",
            "Analysis",
            "VERSION_NOT_FOUND",
        ),
    ],
)
def test_errors_are_of_the_classes_of_a_classic_session(
    connect_client: SparkProcess,
    classic: SparkProcess,
    tmp_path: Path,
    statement: str,
    ours: str,
    pyspark: str,
    condition: str,
) -> None:
    found = failed(connect_client, tmp_path / "client", statement)
    same = failed(classic, tmp_path / "classic", statement)
    assert {k: v for k, v in found.items() if k != "message"} == {
        k: v for k, v in same.items() if k != "message"
    }
    assert ours in found["ours"] and condition in found["condition"]
    assert pyspark in "".join(found["spark"])
    assert found["message"].startswith(f"[{found['condition']}] ")


def test_errors_of_spark_are_its_own(connect_client: SparkProcess, tmp_path: Path) -> None:
    found = failed(connect_client, tmp_path / "t", "DeltaTable.forName(spark, 'no.such')")
    assert (found["error"], found["ours"]) == ("AnalysisException", [])
    assert found["condition"] == "TABLE_OR_VIEW_NOT_FOUND"
    found = failed(connect_client, tmp_path / "u", "table.delete('nothing = 1')")
    assert found["condition"] == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


#: A merge whose source waits until another statement has committed.
CONFLICT = """
import os, threading, time
from pyspark.sql.functions import udf
spark.range(10).coalesce(1).write.format("delta").save(path)
if of == "deltaic":
    from deltaic import exceptions
    from deltaic.tables import DeltaTable
else:
    from delta import exceptions
    from delta.tables import DeltaTable

@udf("bigint")
def wait(id):
    open(path + ".started", "w").close()
    while not os.path.exists(path + ".go"):
        time.sleep(0.05)
    return id

failures = []

def merge():
    source = spark.range(3, 4, 1, 1).select(wait("id").alias("id")).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    try:
        merge.whenMatchedUpdate(set={"id": "-s.id"}).execute()
    except exceptions.ConcurrentDeleteDeleteException as e:
        failures.append([type(e).__name__, type(e).__module__.split(".")[0], str(e)])
    except Exception as e:
        failures.append([type(e).__name__, "other", str(e)])

thread = threading.Thread(target=merge)
thread.start()
deadline = time.monotonic() + 120
while not os.path.exists(path + ".started") and time.monotonic() < deadline:
    time.sleep(0.05)
spark.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE id = 3")
open(path + ".go", "w").close()
thread.join()
result = failures
"""


@pytest.mark.parametrize("of", ["deltaic", "delta"])
def test_conflict_is_of_the_class_that_retries_catch(
    connect_client: SparkProcess, tmp_path: Path, of: str
) -> None:
    path = str(tmp_path / "table")
    [[error, package, message]] = connect_client.run(CONFLICT, path=path, of=of)
    assert (package, error) == (of, "ConcurrentDeleteDeleteException"), message
    assert issubclass(getattr(exceptions, error), exceptions.ConcurrentModificationError)
    assert log.versions(path) == [0, 1]


def test_plugin_is_refused_beside_another_of_its_name(client_python: str, tmp_path: Path) -> None:
    name = f"{PLUGINS_OF_DELTA_SPARK}RelationPlugin".replace(".", "/") + ".class"
    other = tmp_path / "other.jar"
    with ZipFile(JAR) as jar, ZipFile(other, "w") as copy:
        copy.writestr(name, jar.read(name))
    settings = {"spark.jars": f"{JAR},{other}"}
    code = """
from deltaic.tables import DeltaTable
try:
    DeltaTable.isDeltaTable(spark, "/nowhere")
except Exception as e:
    result = str(e)
"""
    with (
        connect_server(tmp_path, client_python, PLUGINS_OF_DELTA_SPARK, settings) as address,
        SparkProcess(python=client_python, remote=address, has_package=True) as client,
    ):
        found = client.run(code)
    assert "DELTAIC_CONNECT_PLUGIN_CONFLICT" in found, found
    assert "other.jar" in found and f"{PLUGINS}RelationPlugin" in found


@pytest.mark.parametrize("plugins", [None, PLUGINS_OF_DELTA_SPARK])
def test_server_without_plugins_and_with_the_names_of_delta_spark(
    client_python: str, tmp_path: Path, plugins: str | None
) -> None:
    with (
        connect_server(tmp_path, client_python, plugins) as address,
        SparkProcess(python=client_python, remote=address, has_package=True) as client,
    ):
        path = str(tmp_path / "table")
        code = """
spark.range(10).write.format("delta").save(path)
try:
    from deltaic.tables import DeltaTable
    DeltaTable.forPath(spark, path).delete("id > 2")
    from delta.tables import DeltaTable
    DeltaTable.forPath(spark, path).generate("symlink_format_manifest")
    result = spark.read.format("delta").load(path).count()
except Exception as e:
    result = [type(e).__name__, e.getCondition(), str(e)]
"""
        found = client.run(code, path=path)
    if plugins is None:
        assert found[:2] == ["InvalidArgumentError", "DELTAIC_CONNECT_PLUGIN_MISSING"], found
        assert "DeltaTable.forPath" in found[2] and f"{PLUGINS}RelationPlugin" in found[2]
    else:
        assert found == 3
