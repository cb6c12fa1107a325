"""Classes of Spark, loaded and checked once for all JVMs that the tests start.

``python -m tests.support.class_archive`` runs a session and has its JVM leave an archive of the
classes it used. A JVM that starts from the archive is up with half the work; one that cannot use
it, since its Java or its class path is another, does without it in silence.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.paths import CLASS_ARCHIVE
from tests.support.spark_process import COMMON_SETTINGS

_STATEMENTS = (
    "CREATE TABLE {t} (id BIGINT, p STRING, m MAP<STRING, INT>) USING {format} PARTITIONED BY (p)",
    "INSERT INTO {t} (id, p, m) SELECT id, CAST(id % 3 AS STRING), map('k', 1) FROM range(100)",
    "SELECT p, count(DISTINCT id), max(m['k']) FROM {t} WHERE id > 3 GROUP BY p ORDER BY p",
    "SELECT * FROM {t} a JOIN {t} b USING (id) WHERE a.p = '1' LIMIT 3",
)
_CHANGES = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "DELETE FROM {t} WHERE id < 10",
    "UPDATE {t} SET p = 'x' WHERE id < 20",
    "MERGE INTO {t} t USING (SELECT explode(sequence(50, 150)) k) s ON t.id = s.k "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.k, 'y')",
    "SELECT count(*), sum(id) FROM {t}",
    "DESCRIBE HISTORY {t}",
)


def main() -> None:
    """Make the archive, or leave an empty file where the JVM can make none."""
    from pyspark.sql import SparkSession

    from deltaic import configure_spark

    made = CLASS_ARCHIVE.with_suffix(".new")
    made.unlink(missing_ok=True)
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={made} -Xlog:disable"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = Path(tempfile.mkdtemp(prefix="class-archive-"))
    builder = configure_spark(SparkSession.builder.master("local[2]"))
    for name, value in COMMON_SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    for format_, statements in (("parquet", _STATEMENTS), ("delta", _STATEMENTS + _CHANGES)):
        for statement in statements:
            spark.sql(statement.format(t=f"seen_{format_}", format=format_)).collect()
    spark.createDataFrame([(1, "a")], "id INT, s STRING").collect()
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    process.stdin.close()  # The JVM ends when its input does, and writes the archive then.
    process.wait(300)
    shutil.rmtree(folder)
    if not made.is_file():
        made.touch()
    made.replace(CLASS_ARCHIVE)


if __name__ == "__main__":
    main()
