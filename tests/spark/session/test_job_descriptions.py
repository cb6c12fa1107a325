"""What Spark lists of the jobs of writes and changes: the operation, its phase and the table."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.jobs import descriptions_of, job_descriptions, jobs_of
from tests.support.maintenance import await_maintenance
from tests.support.session_settings import session_settings
from tests.support.table_builder import append_file, build_table
from tests.support.vacuumed import UNCHECKED, backdate, table_of_many_files

SCHEMA = "id INT, v INT"
FILES = [[(10 * file + row, 0) for row in range(10)] for file in range(3)]


def of_operation(table: str, operation: str, *phases: str) -> list[str]:
    return [f"deltaic {operation}: {phase}, file:{table}" for phase in phases]


def test_jobs_of_optimize_and_reorg(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableRowTracking": "true"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    target = f"delta.`{table}`"
    spark.sql(f"DELETE FROM {target} WHERE id = 3")

    def ran(statement: str) -> list[str]:
        return descriptions_of(spark, lambda: spark.sql(statement))

    purged = ran(f"REORG TABLE {target} APPLY (PURGE)")
    assert purged == of_operation(table, "REORG", "rewrite 1 files")
    with session_settings(spark, {"spark.deltaic.optimize.maxFileSize": "1b"}):
        assert ran(f"OPTIMIZE {target}") == []
    assert ran(f"OPTIMIZE {target}") == of_operation(table, "OPTIMIZE", "rewrite 3 files")
    z_order = f"OPTIMIZE {target} ZORDER BY (id, v)"
    sample, order = "sample the columns of the order", "order the rows of 1 files"
    assert ran(z_order) == of_operation(table, "OPTIMIZE", sample, order)
    assert jobs_of(spark, lambda: spark.sql(z_order)) == 2, "one pass before that over the rows"
    spark.sql(f"INSERT INTO {target} VALUES (50, 0)")
    with committed_meanwhile(lambda: spark.sql(f"OPTIMIZE {target} ZORDER BY (v, id)")):
        followed = ran(f"DELETE FROM {target} WHERE id = 5")
    assert followed[-2:] == of_operation(
        table, "DELETE", "read the row IDs of deleted rows", "find relocated rows by their row IDs"
    )


def test_jobs_of_compactions_of_several_parts(spark: SparkSession, table: str) -> None:
    """Every job has a name: those that write, that join what others wrote, and that order rows."""
    rows = spark.range(0, 40_000, 1, 4).selectExpr(
        "CAST(id AS INT) id", "CAST(rand(7) * 1e9 AS INT) v"
    )
    rows.write.format("delta").save(table)
    target = f"delta.`{table}`"
    small = {"spark.deltaic.optimize.minTaskSize": "32k"}
    sample, order = "sample the columns of the order", "order the rows of {} files"
    join = "join the parts of 1 files"
    with session_settings(spark, small):
        found = descriptions_of(spark, lambda: spark.sql(f"OPTIMIZE {target}"))
        assert found == of_operation(table, "OPTIMIZE", "rewrite 4 files", join)
        spark.sql(f"ALTER TABLE {target} CLUSTER BY (v)")
        found = descriptions_of(spark, lambda: spark.sql(f"OPTIMIZE {target}"))
        assert found == of_operation(table, "OPTIMIZE", sample, order.format(1), join)


@pytest.mark.parametrize("clustered", [False, True])
def test_jobs_of_auto_compaction(spark: SparkSession, table: str, clustered: bool) -> None:
    properties = {"delta.autoOptimize.autoCompact": "true"}
    build_table(spark, table, SCHEMA, FILES, properties=properties)
    if clustered:
        spark.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (v, id)")
    group = job_groups(spark)
    with session_settings(spark, {"spark.deltaic.autoCompact.minNumFiles": "4"}):
        append_file(spark, table, SCHEMA, [(100, 1)])
        await_maintenance(spark)
    (ours,) = {name for name in job_groups(spark) - group if "auto-compaction" in name}
    phases = (
        ["sample the columns of the order", "order the rows of 4 files"]
        if clustered
        else ["rewrite 4 files"]
    )
    names = list(dict.fromkeys(job_descriptions(spark, ours)))
    assert names == [
        name.replace("deltaic ", "auto compaction: deltaic ")
        for name in of_operation(table, "OPTIMIZE", *phases)
    ]


def job_groups(spark: SparkSession) -> set[str]:
    scala = spark.sparkContext._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    jobs = scala.statusStore().jobsList(None)
    groups = (jobs.apply(i).jobGroup() for i in range(jobs.size()))
    return {group.get() for group in groups if group.isDefined()}


def test_jobs_of_vacuum_and_restore(spark: SparkSession, table: str) -> None:
    table_of_many_files(spark, table)
    target = f"delta.`{table}`"
    restored = descriptions_of(
        spark, lambda: spark.sql(f"RESTORE TABLE {target} TO VERSION AS OF 1")
    )
    assert restored == of_operation(table, "RESTORE", "find missing files")
    assert spark.table(target).count() == 1201
    spark.sql(f"DELETE FROM {target}")
    backdate(table, 500)
    with session_settings(spark, UNCHECKED):
        vacuumed = descriptions_of(spark, lambda: spark.sql(f"VACUUM {target} RETAIN 0 HOURS"))
    assert vacuumed == of_operation(table, "VACUUM", "delete 1201 files")
    assert log.files_in(table, ".parquet") == set()


def test_jobs_say_operation_phase_and_table(spark: SparkSession, table: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    build_table(spark, table, SCHEMA, FILES, deletion_vectors=False, properties=properties)
    target = f"delta.`{table}`"
    source = "SELECT CAST(id AS INT) k, 1 w FROM range(5, 25)"
    broadcast = "spark.sql.autoBroadcastJoinThreshold"

    def named(operation: str, *phases: str) -> list[str]:
        return of_operation(table, operation, *phases)

    change = "find and write the rows"
    rewrite = "rewrite {} files without their deleted rows"
    images = "write the change data of {} files"
    rows = spark.range(3).selectExpr("CAST(id AS INT) id", "0 v")
    with session_settings(spark, {broadcast: "-1"}):
        assert descriptions_of(
            spark, lambda: rows.write.format("delta").mode("append").save(table)
        ) == named("WRITE", "write the rows")
        assert descriptions_of(
            spark, lambda: spark.sql(f"DELETE FROM {target} WHERE id % 10 = 5")
        ) == named("DELETE", change, rewrite.format(3), images.format(3))
        assert descriptions_of(
            spark, lambda: spark.sql(f"UPDATE {target} SET v = 1 WHERE id = 11")
        ) == named("UPDATE", change, rewrite.format(1), images.format(1))
        assert descriptions_of(
            spark,
            lambda: spark.sql(
                f"MERGE INTO {target} t USING ({source}) s ON t.id = s.k "
                "WHEN MATCHED AND k < 10 THEN UPDATE SET v = w "
                "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"
            ),
        )[:1] == named("MERGE", change)
        with session_settings(spark, {"spark.deltaic.merge.materializeSource.minTableBytes": "0"}):
            stored = descriptions_of(
                spark,
                lambda: spark.sql(
                    f"MERGE INTO {target} t USING (SELECT id, rand() r FROM range(40)) s"
                    " ON t.id = s.id WHEN MATCHED AND r < 2 THEN UPDATE SET v = 2"
                ),
            )
        assert stored[0] == named("MERGE", "store the rows of the source")[0]
        assert all(name.startswith("deltaic MERGE: ") for name in stored), stored
        with session_settings(spark, {"spark.deltaic.deletionVectors.maxBitmapMergeBytes": "0"}):
            spark.sparkContext.setJobDescription("deltaic nightly")
            names = descriptions_of(spark, lambda: spark.sql(f"DELETE FROM {target} WHERE id < 3"))
            assert spark.sparkContext.getLocalProperty("spark.job.description") == "deltaic nightly"
            spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    assert names[:2] == [
        f"deltaic nightly: {name}"
        for name in named("DELETE", change, "merge the bitmaps of 1 files")
    ]
