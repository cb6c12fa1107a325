"""Programs in Scala and Java, run by spark-submit with both jars, by the names of delta-spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from deltaic.session import delta_api_jar_path, jar_path
from tests.support import log
from tests.support.paths import ROOT
from tests.support.spark_process import SparkProcess
from tests.support.spark_scripts import SPARK_HOME, compile_scala, output_of, submit_options

PROGRAM = Path(__file__).parent / "programs" / "ConcurrentUpdate.scala"
EXAMPLES = ROOT / "examples"
JARS = [jar_path(), delta_api_jar_path()]

#: As a program of delta-spark has them.
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.jars": ",".join(map(str, JARS)),
}


def submit(folder: Path, program: Path, main_class: str, table: Path) -> str:
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--class", main_class]
    return output_of([*command, *submit_options(SETTINGS), str(program), str(table)], folder)


def compile_java(source: Path, folder: Path) -> Path:
    java = Path(os.environ["JAVA_HOME"], "bin") if "JAVA_HOME" in os.environ else Path()
    class_path = os.pathsep.join(map(str, [SPARK_HOME / "jars" / "*", *JARS]))
    jar, classes = folder / "program.jar", folder / "classes"
    subprocess.run(
        [str(java / "javac"), "-cp", class_path, "-d", str(classes), str(source)],
        check=True,
        timeout=300,
    )
    subprocess.run([str(java / "jar"), "cf", str(jar), "-C", str(classes), "."], check=True)
    return jar


def test_scala_program_catches_a_conflict_by_its_class(tmp_path: Path) -> None:
    program = compile_scala(PROGRAM, tmp_path / "program.jar", *JARS)
    printed = submit(tmp_path, program, "ConcurrentUpdate", tmp_path / "t")
    assert "CAUGHT DELTAIC_CONCURRENT_APPEND\nROWS 6\n" in printed


def test_scala_example_of_the_guide_runs(tmp_path: Path) -> None:
    program = compile_scala(EXAMPLES / "scala" / "OrdersJob.scala", tmp_path / "p.jar", *JARS)
    table = tmp_path / "a table"
    printed = submit(tmp_path, program, "OrdersJob", table)
    assert "|   open|   90|\n|shipped|   10|" in printed
    assert operations(table) == ["CREATE OR REPLACE TABLE", "WRITE", "MERGE"]


def test_java_example_of_the_guide_runs(tmp_path: Path) -> None:
    program = compile_java(EXAMPLES / "java" / "OrdersReport.java", tmp_path)
    table = tmp_path / "a table"
    printed = submit(tmp_path, program, "OrdersReport", table)
    for row in ("|    open|   true|    6|", "|returned|  false|    1|", "| shipped|  false|    3|"):
        assert row in printed
    changes = ["CREATE TABLE", "WRITE", "UPDATE", "UPDATE", "MERGE", "OPTIMIZE"]
    assert operations(table) == changes


def operations(table: Path) -> list[str]:
    return [log.commit_info(table, version)["operation"] for version in log.versions(table)]


CONFLICT = """
import sys
sys.path.insert(0, root)
from deltaic.exceptions import ConcurrentAppendException
from tests.support.interleave import committed_meanwhile

spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta"
          " TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')")
append = lambda: spark.range(3).write.format("delta").mode("append").save(path)
append()
result = "nothing failed"
try:
    with committed_meanwhile(append):
        spark.sql(f"UPDATE delta.`{path}` SET id = id + 1")
except ConcurrentAppendException as conflict:
    result = conflict.condition
"""


def test_python_catches_a_conflict_where_both_jars_are(tmp_path: Path) -> None:
    with SparkProcess({"spark.jars": SETTINGS["spark.jars"]}, engine="deltaic") as spark:
        found = spark.run(CONFLICT, path=str(tmp_path / "t"), root=str(ROOT))
    assert found == "DELTAIC_CONCURRENT_APPEND"
