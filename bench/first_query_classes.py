"""Write the list of classes that a first query loads; see `FirstQueryClasses.scala`.

``make first-query-classes`` runs this. It creates a small table, queries it in a separate JVM that
logs loaded classes, and lists those that were loaded from jars after the session was ready.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from bench.settings import REPOSITORY
from deltaic import configure_spark

_LIST = REPOSITORY / "jvm/spark/src/main/resources/io/deltaic/spark/first-query-classes.txt"

#: With fewer classes, the JVM probably writes its log in another format.
_MIN_CLASSES = 3000

#: A class from a jar. Classes generated at run time have another source, or this name.
_LOADED = re.compile(r"\] (?!\S*\.GeneratedClass\$)([\w.$]+) source: file:\S+\.jar$")

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Otherwise the JVM would log the classes of the old list.
    "spark.deltaic.firstQuery.loadClasses": "false",
}
_QUERY = "SELECT p, count(*), sum(id), max(s) FROM delta.`{}` WHERE id > 3 AND p <> 'c' GROUP BY p"


def main(folder: Path) -> None:
    """Run the two processes and write the list."""
    for step in ("make", "query"):
        subprocess.run([sys.executable, "-m", __spec__.name, step, str(folder)], check=True)
    before = int(_ready(folder).read_text())
    lines = _log(folder).read_text().splitlines()[before:]
    names = dict.fromkeys(found[1] for line in lines if (found := _LOADED.search(line)))
    if len(names) < _MIN_CLASSES:
        sys.exit(f"only {len(names)} classes found, less than {_MIN_CLASSES}: {_LIST} not changed")
    _LIST.write_text("".join(f"{name}\n" for name in names))
    print(f"{len(names)} classes in {_LIST}")


def _make(folder: Path) -> None:
    rows = (
        _session()
        .range(0, 1000, 1, 10)
        .selectExpr("id", "substr('abcd', id % 4 + 1, 1) AS p", "concat('name-', id) AS s")
    )
    writer = rows.write.format("delta").option("delta.enableDeletionVectors", "true")
    writer.partitionBy("p").save(_table(folder))
    _session().sql(f"DELETE FROM delta.`{_table(folder)}` WHERE id % 10 = 1")


def _query(folder: Path) -> None:
    spark = _session(f"-Xlog:class+load:file={_log(folder)}")
    _ready(folder).write_text(str(len(_log(folder).read_text().splitlines())))
    rows = spark.read.format("delta").load(_table(folder)).where("id <> 3")
    rows.selectExpr("count(*)", "sum(id)", "max(s)").collect()
    spark.sql(_QUERY.format(_table(folder))).collect()


def _session(java_options: str = "") -> SparkSession:
    builder = configure_spark(SparkSession.builder.master("local[2]"))
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()


def _table(folder: Path) -> str:
    return str(folder / "table")


def _log(folder: Path) -> Path:
    return folder / "classes.log"


def _ready(folder: Path) -> Path:
    return folder / "lines-when-ready"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        {"make": _make, "query": _query}[sys.argv[1]](Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
