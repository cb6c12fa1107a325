"""What a session sets for all its writes: a transaction id and version, and user metadata."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from deltaic import DeltaTable
from deltaic.exceptions import InvalidArgumentError
from tests.support import log
from tests.support.jobs import jobs_of
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

STATEMENTS = [
    "INSERT INTO {t} VALUES (10)",
    "INSERT OVERWRITE {t} VALUES (10)",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET id = 11 WHERE id = 1",
    "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO {t} t USING (SELECT 12L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "DELETE FROM {t} WHERE id = 99",
    "MERGE INTO {t} t USING (SELECT max(id) AS id FROM range(3)) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET id = 13",
]
#: Sources that are not repeatable are materialized before anything else runs.
STORING = {"spark.deltaic.merge.materializeSource.minTableBytes": "0"}


def txn(prefix: str, version: int, app_id: str = "app") -> dict[str, str]:
    return {f"{prefix}.write.txnAppId": app_id, f"{prefix}.write.txnVersion": str(version)}


@pytest.fixture
def numbers(spark: SparkSession, table: str) -> str:
    spark.range(0, 5, 1, 1).write.format("delta").save(table)
    return table


@pytest.mark.parametrize("prefix", ["spark.deltaic", "spark.databricks.delta"])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text.split()[0])
def test_statement_with_the_sessions_txn_version_runs_and_commits_once(
    spark: SparkSession, numbers: str, statement: str, prefix: str
) -> None:
    run = statement.replace("{t}", f"delta.`{numbers}`")
    counts: list[Row] = []
    with session_settings(spark, {**STORING, **txn(prefix, 3)}):
        spark.sql(run)
        left = log.contents(numbers)
        jobs = jobs_of(spark, lambda: counts.extend(spark.sql(run).collect()))
        spark.sql(f"INSERT INTO delta.`{numbers}` VALUES (77)")
    assert jobs == 0
    assert not any(count for row in counts for count in row)
    assert log.contents(numbers) == left
    [progress] = log.actions(numbers, 1, "txn")
    assert (progress["appId"], progress["version"]) == ("app", 3)


def test_options_of_a_write_take_precedence_over_the_session(
    spark: SparkSession, numbers: str
) -> None:
    append = spark.range(1).write.format("delta").mode("append")
    settings = {**txn("spark.deltaic", 3), "spark.deltaic.commitInfo.userMetadata": "nightly"}
    with session_settings(spark, settings):
        own = append.option("txnAppId", "mine").option("txnVersion", "1")
        own.option("userMetadata", "by hand").save(numbers)
    assert [t["appId"] for t in log.last_actions(numbers, "txn")] == ["mine"]
    assert log.commit_info(numbers)["userMetadata"] == "by hand"


def test_write_with_a_new_txn_version_replaces_rows_though_the_sessions_is_not_new(
    spark: SparkSession, numbers: str
) -> None:
    with session_settings(spark, txn("spark.deltaic", 3)):
        spark.sql(f"INSERT INTO delta.`{numbers}` VALUES (5)")
        write = spark.range(9, 10).write.format("delta").mode("overwrite")
        own = write.option("txnAppId", "mine").option("txnVersion", "1")
        own.option("replaceWhere", "id > 2").save(numbers)
    assert rows_of(spark, numbers) == [(0,), (1,), (2,), (9,)]


def test_txn_app_id_without_a_version_is_refused(spark: SparkSession, numbers: str) -> None:
    with (
        session_settings(spark, {"spark.databricks.delta.write.txnAppId": "app"}),
        pytest.raises(InvalidArgumentError, match="txnVersion"),
    ):
        spark.sql(f"INSERT INTO delta.`{numbers}` VALUES (10)")
    assert log.versions(numbers) == [0]


def test_negative_txn_version_is_refused(spark: SparkSession, numbers: str) -> None:
    with session_settings(spark, txn("spark.deltaic", 3)):
        spark.sql(f"INSERT INTO delta.`{numbers}` VALUES (5)")
    for settings in (txn("spark.deltaic", -1), txn("spark.databricks.delta", -1)):
        with (
            session_settings(spark, settings),
            pytest.raises(InvalidArgumentError, match="-1 is not a valid value of write option"),
        ):
            spark.sql(f"INSERT INTO delta.`{numbers}` VALUES (10)")
    write = spark.range(9, 10).write.format("delta").mode("append").option("txnAppId", "new")
    with pytest.raises(InvalidArgumentError, match="from 0 to"):
        write.option("txnVersion", -5).save(numbers)
    assert log.versions(numbers) == [0, 1]


def test_session_may_reset_a_txn_version_that_is_used(spark: SparkSession, numbers: str) -> None:
    reset = {"spark.databricks.delta.write.txnVersion.autoReset.enabled": "true"}
    version = "spark.databricks.delta.write.txnVersion"
    insert = f"INSERT INTO delta.`{numbers}` VALUES (10)"
    with session_settings(spark, {**txn("spark.databricks.delta", 3), **reset}):
        for _ in range(2):
            spark.conf.set(version, "3")
            spark.sql(insert)
            assert spark.conf.get(version, None) is None
    assert log.versions(numbers) == [0, 1]


@pytest.mark.parametrize(
    "statement",
    [*STATEMENTS[:5], "CREATE TABLE {new} (id INT) USING delta"],
    ids=lambda text: text.split()[0],
)
def test_sessions_user_metadata_is_in_the_history(
    spark: SparkSession, numbers: str, statement: str
) -> None:
    new = f"{numbers}-new"
    run = statement.replace("{t}", f"delta.`{numbers}`").replace("{new}", f"delta.`{new}`")
    with session_settings(spark, {"spark.databricks.delta.commitInfo.userMetadata": "nightly"}):
        spark.sql(run)
    path = new if "{new}" in statement else numbers
    newest = DeltaTable.forPath(spark, path).history(1).first()
    assert newest is not None and newest.userMetadata == "nightly"


def test_sessions_user_metadata_is_in_the_history_of_restore_and_vacuum(
    spark: SparkSession, numbers: str
) -> None:
    spark.sql(f"DELETE FROM delta.`{numbers}` WHERE id = 1")
    with session_settings(spark, {"spark.deltaic.commitInfo.userMetadata": "nightly"}):
        spark.sql(f"RESTORE TABLE delta.`{numbers}` TO VERSION AS OF 0")
        spark.sql(f"VACUUM delta.`{numbers}`")
    history = DeltaTable.forPath(spark, numbers).history().sort("version").collect()
    assert [(row.operation, row.userMetadata) for row in history[2:]] == [
        ("RESTORE", "nightly"),
        ("VACUUM START", "nightly"),
        ("VACUUM END", "nightly"),
    ]


def test_properties_and_defaults_that_nobody_knows_as_delta_spark_takes_them(
    spark: SparkSession, table: str
) -> None:
    """Tables of a session that was set up for another engine can be made nevertheless."""
    defaults = "spark.databricks.delta.properties.defaults."
    named = f"delta.`{table}`"
    stored = {"delta.checkpointInterval": "7", "delta.parquet.format.version": "1.0.0"}
    foreign = {f"{defaults}{key.removeprefix('delta.')}": v for key, v in stored.items()}
    with session_settings(spark, {**foreign, f"{defaults}fromAnotherEngine": "1"}):
        spark.sql(f"CREATE TABLE {named} (id BIGINT) USING delta")
    assert log.metadata(table)["configuration"] == stored
    alter = f"ALTER TABLE {named} SET TBLPROPERTIES ('delta.targetFileSize' = '1')"
    with pytest.raises(InvalidArgumentError, match="targetFileSize"):
        spark.sql(alter)
    for setting, value in (
        ("spark.databricks.delta.allowArbitraryProperties.enabled", "true"),
        ("spark.deltaic.allowArbitraryProperties.enabled", "maybe"),
    ):
        with session_settings(spark, {setting: value}):
            if value == "true":
                spark.sql(alter)
            else:
                with pytest.raises(InvalidArgumentError, match="allowArbitraryProperties"):
                    spark.sql(alter)
    assert log.metadata(table)["configuration"] == {**stored, "delta.targetFileSize": "1"}


def test_statement_that_replaces_a_table_gives_it_the_sessions_defaults(
    spark: SparkSession, table: str
) -> None:
    spark.range(3).write.format("delta").option("delta.appendOnly", "false").save(table)
    defaults = {"checkpointInterval": "7", "enableDeletionVectors": "true"}
    prefix = "spark.databricks.delta.properties.defaults."
    with session_settings(spark, {prefix + name: value for name, value in defaults.items()}):
        spark.sql(f"REPLACE TABLE delta.`{table}` (id BIGINT) USING delta")
        replaced = log.metadata(table)["configuration"]
        spark.sql(
            f"CREATE OR REPLACE TABLE delta.`{table}` USING delta"
            " TBLPROPERTIES ('delta.checkpointInterval' = '8') AS SELECT 1L AS id"
        )
    assert replaced == {f"delta.{name}": value for name, value in defaults.items()}
    assert log.metadata(table)["configuration"] == {**replaced, "delta.checkpointInterval": "8"}


def test_session_has_the_version_that_it_committed_last(spark: SparkSession, numbers: str) -> None:
    last = "spark.databricks.delta.lastCommitVersionInSession"
    assert spark.conf.get(last) == "0"
    for statement in (
        *STATEMENTS[:4],
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false')",
        "DELETE FROM {t} WHERE id = 99",
    ):
        spark.sql(statement.replace("{t}", f"delta.`{numbers}`"))
        assert spark.conf.get(last) == str(log.newest(numbers)), statement
    assert spark.newSession().conf.get(last, None) is None
    spark.sql(f"CREATE TABLE delta.`{numbers}-new` (id INT) USING delta")
    assert spark.sql(f"SET {last}").collect()[0].value == "0"


def test_session_may_confine_the_condition_of_replaced_rows_to_partition_columns(
    spark: SparkSession, table: str
) -> None:
    rows = spark.sql("SELECT 1 AS id, 2 AS p")
    overwrite = rows.write.format("delta").partitionBy("p").mode("overwrite")
    overwrite.save(table)
    rows.createOrReplaceTempView("replacement")

    def replace_everywhere(condition: str) -> list[Callable[[], object]]:
        insert = f"INSERT INTO delta.`{table}` REPLACE WHERE {condition} TABLE replacement"
        return [
            lambda: overwrite.option("replaceWhere", condition).save(table),
            lambda: overwrite.option("replaceWhere", condition).save(f"{table}-{condition[0]}"),
            lambda: rows.writeTo(f"delta.`{table}`").overwrite(F.expr(condition)),
            lambda: spark.sql(insert),
        ]

    with session_settings(
        spark, {"spark.databricks.delta.replaceWhere.dataColumns.enabled": "false"}
    ):
        for write in replace_everywhere("id = 1 AND p = 2"):
            with pytest.raises(InvalidArgumentError, match=r"not partitioned by id.*dataColumns"):
                write()
        assert log.versions(table) == [0]
        for write in replace_everywhere("p = 2"):
            write()
    assert log.versions(table) == [0, 1, 2, 3]
    assert rows_of(spark, table) == [(1, 2)]
