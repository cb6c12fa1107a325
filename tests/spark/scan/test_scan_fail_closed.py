"""A plan without the deletion-vector filter gives an error, and never a deleted row."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import log
from tests.support.plans import deletion_filters
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import TableWithOracle, build_with_oracle, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = "DELTAIC_DELETION_VECTOR_FILTER_MISSING"


#: Each assigns its outcome, rows or the error, to `result`.
TRY = """
df = spark.read.format('delta').load(path)
t = 'delta.`' + path + '`'
try:
    result = {expression}
except Exception as e:
    result = 'error: ' + str(e)
"""

EXPRESSIONS = {
    "SQL count of some": "spark.sql(f'SELECT count(*) FROM {t} WHERE id >= 0').collect()",
    "SQL count and sum": "spark.sql(f'SELECT count(*), sum(id) FROM {t}').collect()",
    "SQL select": "spark.sql(f'SELECT * FROM {t}').collect()",
    "SQL filter": "spark.sql(f'SELECT id FROM {t} WHERE id = 1').collect()",
    "SQL aggregate": "spark.sql(f'SELECT max(id) FROM {t}').collect()",
    "SQL limit": "spark.sql(f'SELECT * FROM {t} LIMIT 1').collect()",
    "DataFrame collect": "df.collect()",
    "DataFrame first": "df.first()",
    "DataFrame isEmpty": "df.isEmpty()",
    "DataFrame show": "df.show()",
    "DataFrame to RDD": "df.rdd.count()",
    "DataFrame to local iterator": "list(df.toLocalIterator())",
    "cached": "df.cache().count()",
    "CACHE TABLE": "spark.sql(f'CACHE TABLE c AS SELECT * FROM {t}').collect()",
    "joined": "df.join(df.select('id'), 'id').count()",
    "joined with other rows": "spark.range(5).join(df, 'id').collect()",
    "subquery": "spark.sql(f'SELECT * FROM range(3) WHERE id IN (SELECT id FROM {t})').collect()",
    "union": "df.union(df).count()",
    "older version": "spark.read.format('delta').option('versionAsOf', 1).load(path).collect()",
    "written elsewhere": "df.write.mode('overwrite').parquet(path + '-copy')",
}


@pytest.fixture(scope="module")
def deleted_from(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableWithOracle:
    path = str(tmp_path_factory.mktemp("refused") / "table")
    table = build_with_oracle(
        spark, path, spark.range(0, 100, 1, 1), files=2, deletion_vectors=True
    )
    table.delete("id IN (1, 60)")
    table.delete("id = 2")
    return table


@pytest.mark.protocol("reader-deletion-vectors-1")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_session_without_the_extension_gets_an_error_and_no_row(
    without_extension: SparkProcess, deleted_from: TableWithOracle, expression: str
):
    code = TRY.replace("{expression}", EXPRESSIONS[expression])
    answer = without_extension.run(code, path=deleted_from.path)
    assert isinstance(answer, str)
    assert answer.startswith("error: ")
    assert REFUSED in answer
    assert deleted_from.path in answer
    shutil.rmtree(deleted_from.path + "-copy", ignore_errors=True)


def test_session_without_the_extension_reads_what_needs_no_vector(
    without_extension: SparkProcess, deleted_from: TableWithOracle
):
    code = TRY.replace(
        "{expression}",
        "[spark.read.format('delta').option('versionAsOf', 0).load(path).count(),"
        " spark.sql(f'SELECT count(*) FROM {t} WHERE id > 1000').first()[0]]",
    )
    assert without_extension.run(code, path=deleted_from.path) == [100, 0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET id = -3 WHERE id = 3",
        "MERGE INTO {t} t USING (SELECT 3L AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
    ],
)
@pytest.mark.parametrize("vectors", [True, False])
def test_session_without_the_extension_does_not_change_rows(
    without_extension: SparkProcess, spark: SparkSession, table: str, vectors: bool, statement: str
) -> None:
    target = build_with_oracle(spark, table, spark.range(10), deletion_vectors=vectors)
    code = (
        "try:\n    spark.sql(statement)\n    result = 'done'\n"
        "except Exception as e:\n    result = str(e)"
    )
    answer = without_extension.run(code, statement=statement.replace("{t}", target.sql_name))
    assert answer != "done"
    target.assert_same_content()


@pytest.mark.parametrize(
    "write",
    [
        "spark.range(5).writeTo(t).append()",
        "spark.range(5).write.insertInto(t)",
        "spark.range(5).writeTo(t).overwritePartitions()",
        "spark.sql(f'INSERT INTO {t} VALUES (1)')",
    ],
)
def test_session_without_the_extension_does_not_write_rows_that_no_rule_has_seen(
    without_extension: SparkProcess, spark: SparkSession, table: str, write: str
) -> None:
    target = build_with_oracle(spark, table, spark.range(10), deletion_vectors=False)
    code = f"try:\n    {write}\n    result = 'done'\nexcept Exception as e:\n    result = str(e)"
    answer = without_extension.run(code, t=target.sql_name)
    assert "DELTAIC_EXTENSION_MISSING" in answer and table in answer
    target.assert_same_content()


def test_session_without_the_extension_counts_without_the_deleted_rows(
    without_extension: SparkProcess, deleted_from: TableWithOracle
):
    # The log alone says how many rows are left: no file is opened, so no vector is needed.
    code = TRY.replace(
        "{expression}",
        "[spark.catalog.clearCache() or df.count(),"
        " spark.sql(f'SELECT count(*), count(1) FROM {t}').first()[0],"
        " spark.read.format('delta').option('versionAsOf', 1).load(path).count()]",
    )
    assert without_extension.run(code, path=deleted_from.path) == [97, 97, 98]


@pytest.fixture(scope="module")
def all_rules(spark: SparkSession) -> str:
    """The names of all rules of Spark's optimizers. To exclude one of ours is refused."""
    session = spark._jsparkSession
    jvm = spark._jvm
    assert jvm is not None
    nothing = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    adaptive = jvm.org.apache.spark.sql.execution.adaptive.AQEOptimizer(
        session.sessionState().conf(), nothing
    )
    names = {
        batch.rules().apply(i).ruleName()
        for optimizer in (session.sessionState().optimizer(), adaptive)
        for batch in _items(optimizer.batches())
        for i in range(batch.rules().size())
        if not batch.rules().apply(i).ruleName().startswith("io.deltaic.")
    }
    assert len(names) > 80
    own = [
        f"io.deltaic.spark.{name}"
        for name in ("sql.planning.DeletionVectorStrategy", "scan.deletionvectors.IsDeleted")
    ]
    return ",".join([*sorted(names), *own, "io.deltaic.spark.DeltaicExtension"])


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t}",
        "SELECT count(*), sum(id) FROM {t}",
        "SELECT id FROM {t} WHERE id < 70",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 1",
        "SELECT id FROM {t} ORDER BY id LIMIT 3",
        "SELECT id % 3, count(*) FROM {t} GROUP BY 1",
    ],
)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_excluding_every_rule_does_not_return_a_deleted_row(
    spark: SparkSession, deleted_from: TableWithOracle, all_rules: str, query: str, adaptive: str
):
    deleted_from.oracle()
    settings = {
        "spark.sql.optimizer.excludedRules": all_rules,
        "spark.sql.adaptive.optimizer.excludedRules": all_rules,
        "spark.sql.adaptive.enabled": adaptive,
    }
    with session_settings(spark, settings):
        deleted_from.assert_same_answer(query)
        assert deletion_filters(spark.sql(query.format(t=deleted_from.sql_name)))


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_data_file_that_is_gone_is_an_error_that_names_it_and_the_version(
    spark: SparkSession, table: str, vectorized: str
) -> None:
    target = build_with_oracle(spark, table, spark.range(3), deletion_vectors=True)
    target.append(spark.range(3, 4))
    gone = log.data_path(table, log.last_actions(table, "add")[0])
    gone.unlink()
    refused = rf"DELTAIC_DATA_FILE_MISSING\] Table .*{table}, version 1: .*{gone.name}"
    with session_settings(spark, {"spark.sql.parquet.enableVectorizedReader": vectorized}):
        for query in ("SELECT sum(id) FROM {t}", "SELECT id FROM {t} WHERE id > 0"):
            with pytest.raises(Exception, match=refused):
                spark.sql(query, t=spark.read.format("delta").load(table)).collect()
        with session_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
            assert spark.read.format("delta").load(table).count() == 4  # read from the log
            assert sorted(row[0] for row in rows_of(spark, table)) == [0, 1, 2]
