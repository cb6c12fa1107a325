"""Identity columns: unique values across tasks, and a high-water mark beyond every value."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from deltaic.exceptions import MetadataChangedException
from tests.support import log
from tests.support.interleave import committed_meanwhile
from tests.support.session_settings import session_settings
from tests.support.table_builder import rows_of

VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


def create(spark: SparkSession, table: str, kind: str = "ALWAYS", sequence: str = "") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` "
        f"(id BIGINT GENERATED {kind} AS IDENTITY{sequence}, v INT) USING delta {VECTORS}"
    )


def run(spark: SparkSession, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row[0] for row in rows_of(spark, table))


def mark(table: str) -> int | None:
    (column, _) = json.loads(log.metadata(table)["schemaString"])["fields"]
    found: int | None = column["metadata"].get("delta.identity.highWaterMark")
    return found


@pytest.mark.protocol("column-invariants-4", "identity-columns-2")
def test_definition_is_in_the_schema_and_the_protocol(spark: SparkSession, table: str) -> None:
    create(spark, table, sequence=" (START WITH 5 INCREMENT BY 3)")
    (protocol,) = log.actions(table, 0, "protocol")
    assert "identityColumns" in protocol["writerFeatures"]
    text = log.metadata(table)["schemaString"]
    for part in (
        '"delta.identity.start":5',
        '"delta.identity.step":3',
        '"delta.identity.allowExplicitInsert":false',
    ):
        assert part in text


@pytest.mark.protocol("identity-columns-10", "identity-columns-14", "identity-columns-3")
@pytest.mark.protocol("identity-columns-4", "identity-columns-5", "identity-columns-9")
@pytest.mark.parametrize(("start", "step"), [(1, 1), (5, 3), (-7, -2), (10, -1)])
def test_values_are_of_the_sequence_and_unique_over_many_writes(
    spark: SparkSession, table: str, start: int, step: int
) -> None:
    create(spark, table, sequence=f" (START WITH {start} INCREMENT BY {step})")
    run(spark, table, "INSERT INTO {t} (v) VALUES (1), (2), (3)")
    rows = spark.range(0, 50, 1, 4).selectExpr("CAST(id AS INT) AS v")
    rows.write.format("delta").mode("append").save(table)
    run(spark, table, "INSERT INTO {t} (v) SELECT id FROM range(0, 20, 1, 3)")
    values = ids(spark, table)
    assert len(values) == len(set(values)) == 73
    assert all((value - start) * step >= 0 and (value - start) % step == 0 for value in values)
    assert mark(table) == (max(values) if step > 0 else min(values))


@pytest.mark.protocol("identity-columns-11")
def test_write_that_is_refused_or_adds_nothing_leaves_the_high_water_mark(
    spark: SparkSession, table: str
) -> None:
    create(spark, table)
    assert mark(table) is None
    run(spark, table, "INSERT INTO {t} (v) SELECT 1 WHERE false")
    assert mark(table) is None
    run(spark, table, "INSERT INTO {t} (v) VALUES (1)")
    run(spark, table, "DELETE FROM {t}")
    assert mark(table) == 1
    assert log.last_actions(table, "metaData") == []
    run(spark, table, "INSERT INTO {t} (v) VALUES (1)")
    assert ids(spark, table) == [2]


@pytest.mark.protocol("identity-columns-8")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (7, 1)",
        "INSERT INTO {t} (id, v) VALUES (7, 1)",
        "MERGE INTO {t} t USING (SELECT 7 k) s ON t.id = k "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
        "MERGE INTO {t} t USING (SELECT 7L id, 1 v) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_value_given_to_an_always_generated_column_is_refused(
    spark: SparkSession, table: str, statement: str
) -> None:
    create(spark, table)
    with pytest.raises(Exception, match="DELTAIC_IDENTITY_EXPLICIT_INSERT"):
        run(spark, table, statement)
    with pytest.raises(Exception, match="DELTAIC_IDENTITY_EXPLICIT_INSERT"):
        spark.sql("SELECT 7L id, 1 v").write.format("delta").mode("append").save(table)
    assert log.newest(table) == 0


@pytest.mark.protocol("identity-columns-7")
def test_value_given_to_a_column_generated_by_default_is_never_given_out_again(
    spark: SparkSession, table: str
) -> None:
    create(spark, table, "BY DEFAULT", " (START WITH 1 INCREMENT BY 10)")
    run(spark, table, "INSERT INTO {t} VALUES (25, 1)", "INSERT INTO {t} (v) VALUES (2)")
    assert ids(spark, table) == [25, 31]


def test_update_of_an_identity_column_is_refused_and_others_keep_it(
    spark: SparkSession, table: str
) -> None:
    create(spark, table, "BY DEFAULT")
    run(spark, table, "INSERT INTO {t} (v) VALUES (1)", "UPDATE {t} SET v = 2")
    assert rows_of(spark, table) == [(1, 2)]
    with pytest.raises(Exception, match="DELTAIC_IDENTITY_UPDATE"):
        run(spark, table, "UPDATE {t} SET id = 4")


@pytest.mark.protocol("identity-columns-14", "identity-columns-9")
def test_merge_generates_values_in_all_its_clauses(spark: SparkSession, table: str) -> None:
    create(spark, table)
    run(spark, table, "INSERT INTO {t} (v) VALUES (0), (1)")
    before = max(ids(spark, table))
    run(
        spark,
        table,
        "MERGE INTO {t} t USING (SELECT explode(sequence(1, 40)) k) s ON t.v = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 100 "
        "WHEN NOT MATCHED AND k % 2 = 0 THEN INSERT (v) VALUES (k) "
        "WHEN NOT MATCHED THEN INSERT (v) VALUES (-k)",
    )
    values = ids(spark, table)
    assert len(values) == len(set(values)) == 41
    assert max(values) > before
    assert mark(table) == max(values)
    run(
        spark,
        table,
        "MERGE INTO {t} t USING (SELECT 77 k) s ON t.v = s.k "
        "WHEN NOT MATCHED THEN INSERT (v) VALUES (k)",
    )
    assert mark(table) == ids(spark, table)[-1]
    assert ids(spark, table)[-1] > max(values)


@pytest.mark.parametrize("whole", ["true", "false"])
@pytest.mark.parametrize("value", ["k", "size(transform(array(k), x -> x)) * k"])
def test_merge_generates_values_however_its_plan_is_compiled(
    spark: SparkSession, table: str, whole: str, value: str
) -> None:
    create(spark, table)
    rows = "(SELECT /*+ REPARTITION(3) */ explode(sequence(1, 30)) k)"
    with session_settings(spark, {"spark.sql.codegen.wholeStage": whole}):
        run(
            spark,
            table,
            f"MERGE INTO {{t}} t USING {rows} s ON t.v = s.k "
            f"WHEN NOT MATCHED AND k % 2 = 0 THEN INSERT (v) VALUES ({value}) "
            "WHEN NOT MATCHED THEN INSERT (v) VALUES (-k)",
        )
    assert len(set(ids(spark, table))) == 30


NUMBERED = "INSERT INTO {t} (v) VALUES (1)"
STATED = "INSERT INTO {t} VALUES (500, 1)"
MERGED = "MERGE INTO {t} t USING (SELECT 7 k) s ON t.v = s.k WHEN NOT MATCHED THEN INSERT "


@pytest.mark.protocol("identity-columns-5", "identity-columns-6", "identity-columns-7")
@pytest.mark.parametrize(
    ("ours", "follows"),
    [
        (STATED, True),
        (NUMBERED, False),
        (MERGED + "(v) VALUES (k)", False),
        (MERGED + "(id, v) VALUES (k, k)", False),
    ],
)
def test_only_specified_values_do_not_conflict_with_those_of_another_commit(
    spark: SparkSession, table: str, ours: str, follows: bool
) -> None:
    create(spark, table, "BY DEFAULT")
    run(spark, table, NUMBERED)
    with committed_meanwhile(lambda: run(spark, table, NUMBERED)):
        if follows:
            run(spark, table, ours)
        else:
            with pytest.raises(MetadataChangedException):
                run(spark, table, ours)
    if follows:
        run(spark, table, NUMBERED)
    values = ids(spark, table)
    assert len(values) == len(set(values)) == (4 if follows else 2)
    assert mark(table) == values[-1]


@pytest.mark.protocol("identity-columns-12", "identity-columns-13")
@pytest.mark.parametrize(("start", "step"), [(2**63 - 2, 1), (-(2**63) + 1, -1), (2**62, 2**62)])
def test_overflow_is_an_error_and_writes_nothing(
    spark: SparkSession, table: str, start: int, step: int
) -> None:
    create(spark, table, sequence=f" (START WITH {start} INCREMENT BY {step})")
    with pytest.raises(Exception, match="DELTAIC_IDENTITY_OVERFLOW"):
        run(spark, table, "INSERT INTO {t} (v) VALUES (1), (2), (3)")
    assert log.newest(table) == 0
    run(spark, table, "INSERT INTO {t} (v) VALUES (1)")
    assert ids(spark, table) == [start]


@pytest.mark.parametrize(
    "definition",
    [
        "id INT GENERATED ALWAYS AS IDENTITY, v INT) USING delta",
        "id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta PARTITIONED BY (id)",
        "id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0), v INT) USING delta",
    ],
)
def test_column_that_cannot_be_an_identity_column_is_refused(
    spark: SparkSession, table: str, definition: str
) -> None:
    with pytest.raises(Exception, match=r"IDENTITY|identity"):
        spark.sql(f"CREATE TABLE delta.`{table}` ({definition}")


def test_plan_from_a_path_outlives_a_new_high_water_mark(spark: SparkSession, table: str) -> None:
    create(spark, table)
    df = spark.read.format("delta").load(table)
    run(spark, table, "INSERT INTO {t} (v) VALUES (1)", "INSERT INTO {t} (v) VALUES (2)")
    assert df.count() == 2
