"""`_metadata` and the functions of the input file say what they say in delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException

from deltaic.exceptions import TableStateError
from tests.support import log
from tests.support.plans import only_scan, plan_nodes, scanned_columns, scanned_files
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}

#: Names and types of columns, nullability included, and rows. Spark's own marks of a column in its
#: metadata say which source it is from.
SHOW = """
def shape(t):
    if t.typeName() == 'struct':
        return [[f.name, f.nullable, shape(f.dataType)] for f in t.fields]
    return t.simpleString()
df = spark.sql(query)
result = [shape(df.schema), sorted(map(repr, df.collect()))]
"""


def show(spark: SparkSession, query: str) -> Any:
    scope: dict[str, Any] = {"spark": spark, "query": query}
    exec(SHOW, scope)
    return scope["result"]


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of six files, in partitions whose names need escapes, with rows deleted in some."""
    path = str(tmp_path_factory.mktemp("a b%c") / "täble")
    rows = spark.range(0, 600, 1, 2).selectExpr(
        "id", "element_at(array('x y', 'ä%', NULL), CAST(id % 3 AS INT) + 1) AS p", "hex(id) AS s"
    )
    rows.write.format("delta").options(**VECTORS).partitionBy("p").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p = 'x y' AND id % 10 = 1")
    return path


QUERIES = [
    "SELECT id, _metadata FROM {t}",
    "SELECT id, _metadata.* FROM {t} WHERE id >= 0",
    "SELECT p, _metadata.file_path, _metadata.file_name, _metadata.row_index FROM {t}",
    "SELECT DISTINCT _metadata.file_size, _metadata.file_modification_time FROM {t}",
    "SELECT DISTINCT _metadata.file_block_start, _metadata.file_block_length FROM {t}",
    "SELECT count(*) FROM {t} WHERE _metadata.file_size > 10 AND _metadata.row_index % 2 = 0",
    "SELECT id FROM {t} WHERE _metadata.file_path LIKE '%p=x\\\\%2520y/%' AND id < 300",
    "SELECT id FROM {t} WHERE _metadata.row_index BETWEEN 5 AND 8 AND p IS NULL",
    "SELECT id FROM {t} WHERE _metadata.file_name = '' OR id = 7",
    "SELECT max(_metadata.row_index), count(*), _metadata.file_name FROM {t} GROUP BY 3",
    "SELECT a.id, b._metadata.row_index FROM {t} a JOIN {t} b"
    " ON a._metadata.file_path = b._metadata.file_path AND a.id = b.id + 6",
    "SELECT id, named_struct('m', _metadata).m.row_index FROM {t} WHERE id > 590",
    "SELECT id FROM {t} ORDER BY _metadata.file_name, _metadata.row_index LIMIT 3",
    "SELECT id, input_file_name(), input_file_block_start(), input_file_block_length() FROM {t}",
    "SELECT input_file_name() AS f, count(*) FROM {t} WHERE id > 3 GROUP BY 1",
]

MODES = {
    "default": {},
    "row-based reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "no whole-stage codegen": {"spark.sql.codegen.wholeStage": "false"},
    "small splits": {
        "spark.sql.files.maxPartitionBytes": "500",
        "spark.sql.files.openCostInBytes": "0",
    },
    "no nested pruning": {"spark.sql.optimizer.nestedSchemaPruning.enabled": "false"},
}


@pytest.mark.parametrize("query", QUERIES)
def test_types_and_values_are_those_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, places: str, query: str
):
    text = query.format(t=f"delta.`{places}`")
    assert show(spark, text) == delta_spark.run(SHOW, query=text)


@pytest.mark.parametrize("mode", MODES)
def test_every_way_to_run_the_plan_gives_the_same(
    spark: SparkSession, delta_spark: SparkProcess, places: str, mode: str
):
    query = f"SELECT id, p, _metadata.*, input_file_name() FROM delta.`{places}` WHERE id < 400"
    set_modes = "".join(f"spark.conf.set({k!r}, {v!r})\n" for k, v in MODES[mode].items())
    unset_modes = "".join(f"spark.conf.unset({k!r})\n" for k in MODES[mode])
    theirs = delta_spark.run(f"{set_modes}{SHOW}{unset_modes}", query=query)
    with session_settings(spark, MODES[mode]):
        assert show(spark, query) == theirs


def test_values_are_those_of_the_log(spark: SparkSession, places: str):
    rows = spark.sql(f"SELECT DISTINCT _metadata.* FROM delta.`{places}`").collect()
    adds = {Path(add["path"]).name: add for add in log.active_files(places)}
    assert {row.file_name for row in rows} == set(adds)
    for row in rows:
        add = adds[row.file_name]
        assert (row.file_size, row.file_block_length) == (add["size"], add["size"])
        assert int(row.file_modification_time.timestamp() * 1000) == add["modificationTime"]


def test_only_the_fields_asked_for_are_made_and_batches_stay_batches(
    spark: SparkSession, places: str
):
    df = spark.sql(f"SELECT _metadata.file_size FROM delta.`{places}` WHERE p = 'ä%'")
    assert scanned_columns(df) == "struct<_metadata:struct<file_size:bigint>>"
    df = spark.sql(f"SELECT _metadata.row_index, id FROM delta.`{places}`")
    df.collect()
    assert only_scan(df).supportsColumnar()
    assert "ColumnarToRowExec" in [node.kind for node in plan_nodes(df)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("_metadata.file_name = '{name}'", 1),
        ("_metadata.file_name IN ('{name}', 'none')", 1),
        ("_metadata.file_path LIKE '%{name}' AND id >= 0", 1),
        ("_metadata.file_size > 1000000", 0),
        ("_metadata.file_modification_time < TIMESTAMP'2000-01-01'", 0),
        ("_metadata.file_name = '{name}' OR _metadata.row_index = 0", 6),
        ("_metadata.file_name = '{name}' OR id = 0", 6),
        ("NOT _metadata.file_name = '{name}'", 5),
    ],
)
def test_filters_on_a_files_constants_choose_files(
    spark: SparkSession, places: str, condition: str, expected: int
):
    name = Path(log.active_files(places)[0]["path"]).name
    where = condition.format(name=name)
    df = spark.sql(f"SELECT id, _metadata.file_name FROM delta.`{places}` WHERE {where}")
    assert len(scanned_files(df)) == expected
    everything = spark.sql(f"SELECT id, p, _metadata FROM delta.`{places}`").collect()
    wanted = spark.createDataFrame(everything).where(where)
    assert sorted(r.id for r in df.collect()) == sorted(r.id for r in wanted.collect())


@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("_metadata.row_index < 3", "i < 3"),
        ("_metadata.file_name = '{name}' AND id % 2 = 0", "f = '{name}' AND id % 2 = 0"),
        ("_metadata.file_name <> '{name}' OR _metadata.row_index = 1", "f <> '{name}' OR i = 1"),
        ("_metadata.file_size > 1000000", "false"),
        ("id IN (SELECT id FROM {t} WHERE _metadata.row_index BETWEEN 2 AND 4)", "i IN (2, 3, 4)"),
        (
            "_metadata.file_path IN (SELECT _metadata.file_path FROM {t} WHERE id = 42)"
            " AND _metadata.row_index > 5",
            "p = 0 AND i > 5",
        ),
    ],
)
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_delete_by_file_and_position(
    spark: SparkSession, table: str, vectors: str, condition: str, where: str
):
    rows = spark.range(0, 60, 1, 1).selectExpr("id", "id % 3 AS p")
    rows.write.format("delta").option("delta.enableDeletionVectors", vectors).partitionBy("p").save(
        table
    )
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN (0, 1, 2)")
    before = spark.sql(
        f"SELECT id, p, _metadata.row_index AS i, _metadata.file_name AS f FROM delta.`{table}`"
    ).collect()
    name = next(row.f for row in before if row.id == 7)
    text = condition.format(t=f"delta.`{table}`", name=name)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE {text}")
    gone = spark.createDataFrame(before).where(where.format(name=name))
    left = {row.id for row in before} - {row.id for row in gone.collect()}
    assert {row.id for row in spark.read.format("delta").load(table).collect()} == left


def test_filter_that_fails_for_a_file_fails_the_query(spark: SparkSession, places: str):
    query = f"SELECT id FROM delta.`{places}` WHERE 1 / (_metadata.file_size * 0) > 0"
    with (
        session_settings(spark, {"spark.sql.ansi.enabled": "true"}),
        pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"),
    ):
        spark.sql(query).collect()


def test_a_column_of_the_users_goes_first_and_the_hidden_one_stays_in_reach(
    spark: SparkSession, delta_spark: SparkProcess, table: str
):
    schema = "id BIGINT, _metadata STRUCT<file_name: STRING, row_index: BIGINT>"
    rows = [(n, (f"mine {n}", n * 10)) for n in range(20)]
    build_table(spark, table, schema, [rows])
    spark.sql(f"DELETE FROM delta.`{table}` WHERE _metadata.row_index = 30")
    kept = [n for n in range(20) if n != 3]
    query = f"SELECT id, _metadata.row_index FROM delta.`{table}` WHERE _metadata.row_index > 50"
    assert sorted(map(tuple, spark.sql(query).collect())) == [(n, n * 10) for n in kept if n > 5]
    code = """
df = spark.read.format('delta').load(path)
hidden = df.metadataColumn('_metadata')
df = df.where(hidden.getField('row_index') != 4)
result = sorted(map(repr, df.select('id', '_metadata.file_name',
    hidden.getField('row_index').alias('i'), hidden.getField('file_name').alias('f')).collect()))
"""
    scope: dict[str, Any] = {"spark": spark, "path": table}
    exec(code, scope)
    assert scope["result"] == delta_spark.run(code, path=table)
    assert len(scope["result"]) == len(kept) - 1


def test_columns_of_the_table_may_be_called_as_the_fields(spark: SparkSession, table: str):
    rows = spark.range(9).selectExpr("id AS row_index", "id % 2 AS file_size", "id AS file_name")
    rows.write.format("delta").partitionBy("file_size").save(table)
    found = spark.sql(
        "SELECT row_index, file_size, file_name, _metadata.file_size AS m, _metadata.file_name AS n"
        f" FROM delta.`{table}`"
    ).collect()
    assert sorted((r.row_index, r.file_size, r.file_name) for r in found) == [
        (i, i % 2, i) for i in range(9)
    ]
    adds = {Path(add["path"]).name: add["size"] for add in log.active_files(table)}
    assert {(r.n, r.m) for r in found} == set(adds.items())


def test_fields_of_row_tracking_are_unknown_without_it(spark: SparkSession, places: str):
    for field in ("row_id", "base_row_id", "row_commit_version", "default_row_commit_version"):
        with pytest.raises(AnalysisException, match=rf"FIELD_NOT_FOUND.*{field}"):
            spark.sql(f"SELECT _metadata.{field} FROM delta.`{places}`")


TRACKED = """
name = 'delta.`' + path + '`'
spark.range(0, 20, 1, 2).selectExpr('id', 'id % 2 AS p').write.format('delta').options(**{
    'delta.enableRowTracking': 'true', 'delta.enableDeletionVectors': vectors,
    'delta.columnMapping.mode': mapping}).save(path)
for statement in [
    'UPDATE {t} SET p = p + 10 WHERE id IN (3, 7, 13)',
    'DELETE FROM {t} WHERE id = 1',
    'OPTIMIZE {t}',
    'INSERT INTO {t} VALUES (50, 0), (51, 1)',
    'MERGE INTO {t} t USING (SELECT explode(array(5, 51, 60)) AS id) s ON t.id = s.id'
    ' WHEN MATCHED THEN UPDATE SET p = 99 WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 7)',
]:
    spark.sql(statement.replace('{t}', name))
result = None
"""

TRACKED_QUERIES = [
    "SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {t}",
    "SELECT * , _metadata.base_row_id, _metadata.default_row_commit_version FROM {t}",
    "SELECT id, _metadata FROM {t}",
    "SELECT id FROM {t} WHERE _metadata.row_id > 10 AND _metadata.row_commit_version < 4",
    "SELECT id, p FROM {t} WHERE _metadata.base_row_id > 5",
    "SELECT count(DISTINCT _metadata.row_id), count(*) FROM {t}",
]


@pytest.fixture(
    scope="module",
    params=[("true", "none"), pytest.param(("false", "id"), marks=pytest.mark.thorough)],
    ids=["vectors", "no vectors, columns by id"],
)
def tracked(
    delta_spark: SparkProcess,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> str:
    """A table that delta-spark wrote with row tracking; some row IDs are in its data files."""
    path = str(tmp_path_factory.mktemp("tracked") / "table")
    vectors, mapping = request.param
    delta_spark.run(TRACKED, path=path, vectors=vectors, mapping=mapping)
    return path


@pytest.mark.protocol("reader-row-tracking-1", "reader-row-tracking-2", "reader-row-tracking-3")
@pytest.mark.protocol("reader-row-tracking-4", "reader-row-tracking-5", "reader-row-tracking-6")
@pytest.mark.protocol("reader-row-tracking-7", "reader-row-tracking-8")
@pytest.mark.parametrize("query", TRACKED_QUERIES)
def test_row_ids_and_commit_versions_are_those_of_delta_spark(
    spark: SparkSession, delta_spark: SparkProcess, tracked: str, query: str
):
    text = query.format(t=f"delta.`{tracked}`")
    theirs = delta_spark.run(SHOW, query=text)
    for mode in ["default", "row-based reader", "small splits"]:
        # The place of a block depends on how files are split.
        with session_settings(spark, MODES[mode] if "_metadata FROM" not in query else {}):
            assert show(spark, text) == theirs, mode


@pytest.mark.protocol("reader-row-tracking-1")
def test_row_ids_of_older_versions_are_what_they_were(
    spark: SparkSession, delta_spark: SparkProcess, tracked: str
):
    for version in log.versions(tracked):
        query = f"SELECT id, _metadata.row_id FROM delta.`{tracked}` VERSION AS OF {version}"
        assert show(spark, query) == delta_spark.run(SHOW, query=query)


@pytest.mark.protocol("reader-row-tracking-3")
def test_a_file_without_a_row_id_on_a_tracked_table_is_an_error_that_names_it(
    spark: SparkSession, tracked: str, table: str
):
    log.copy_table(tracked, table)
    add = log.active_files(table)[0]
    broken = {k: v for k, v in add.items() if k != "baseRowId"}
    remove = {"path": add["path"], "dataChange": False, "deletionTimestamp": 1}
    if "deletionVector" in add:
        remove["deletionVector"] = add["deletionVector"]
    log.write_commit(table, log.newest(table) + 1, {"remove": remove}, {"add": broken})
    assert spark.sql(f"SELECT * FROM delta.`{table}`").count() > 0
    with pytest.raises(TableStateError, match="DELTAIC_ROW_TRACKING_INCOMPLETE") as error:
        spark.sql(f"SELECT _metadata.row_id FROM delta.`{table}`").collect()
    assert add["path"] in str(error.value)
