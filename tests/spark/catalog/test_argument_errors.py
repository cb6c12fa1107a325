"""Wrong arguments of the Python API: the classes and phrases are those of delta-spark's package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from deltaic import DeltaTable, configure_spark_with_delta_pip
from deltaic.exceptions import InvalidArgumentError
from deltaic.tables import IdentityGenerator
from tests.support.table_builder import build_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMN = "must be a Spark SQL Column or a string (expression in SQL syntax)"
NONE = "cannot be None"
NAMES = "must contain only strings with column names"
VALUES = "must contain only Spark SQL Columns"
STEP = "requires step to be non-zero"

#: By the argument that is wrong: the call, the error, and a phrase of delta-spark's message.
OF_TABLE: dict[str, tuple[Callable[[Any, Any], object], type[Exception], str]] = {
    "merge(source)": (lambda t, _: t.merge(5, "x"), TypeError, "must be DataFrame"),
    "merge(source=None)": (lambda t, _: t.merge(None, "x"), ValueError, NONE),
    "merge(condition)": (lambda t, df: t.merge(df, 5), TypeError, COLUMN),
    "merge(condition=None)": (lambda t, df: t.merge(df, None), ValueError, NONE),
    "whenMatchedUpdate(condition)": (
        lambda t, df: t.merge(df, "true").whenMatchedUpdate(5, {"id": "1"}),
        TypeError,
        COLUMN,
    ),
    "whenMatchedUpdate(set=None)": (
        lambda t, df: t.merge(df, "true").whenMatchedUpdate(set=None),
        ValueError,
        NONE,
    ),
    "whenNotMatchedInsert(values)": (
        lambda t, df: t.merge(df, "true").whenNotMatchedInsert(values="id"),
        TypeError,
        "must be a dict",
    ),
    "whenNotMatchedBySourceUpdate(set) names": (
        lambda t, df: t.merge(df, "true").whenNotMatchedBySourceUpdate(set={1: "id"}),
        TypeError,
        NAMES,
    ),
    "delete(condition)": (lambda t, _: t.delete(5), TypeError, COLUMN),
    "update(condition)": (lambda t, _: t.update(5, {"id": "1"}), TypeError, COLUMN),
    "update(set=None)": (lambda t, _: t.update("true"), ValueError, NONE),
    "update(set)": (lambda t, _: t.update(set=5), TypeError, "must be a dict"),
    "update(set) names": (lambda t, _: t.update(set={1: "1"}), TypeError, NAMES),
    "update(set) values": (lambda t, _: t.update(set={"id": 1}), TypeError, VALUES),
    "upgradeTableProtocol(readerVersion)": (
        lambda t, _: t.upgradeTableProtocol("3", 7),
        ValueError,
        "needs to be an integer",
    ),
    "upgradeTableProtocol(writerVersion)": (
        lambda t, _: t.upgradeTableProtocol(3, None),
        ValueError,
        "needs to be an integer",
    ),
    "addFeatureSupport": (lambda t, _: t.addFeatureSupport(5), ValueError, "needs to be a string"),
    "dropFeatureSupport(featureName)": (
        lambda t, _: t.dropFeatureSupport(5),
        ValueError,
        "needs to be a string",
    ),
    "dropFeatureSupport(truncateHistory)": (
        lambda t, _: t.dropFeatureSupport("deletionVectors", "yes"),
        ValueError,
        "needs to be a boolean",
    ),
    "clone(target)": (lambda t, _: t.clone(5), ValueError, "needs to be a string"),
    "clone(isShallow)": (lambda t, _: t.clone("x", 1), ValueError, "needs to be a boolean"),
    "clone(replace)": (lambda t, _: t.clone("x", True, 1), ValueError, "needs to be a boolean"),
    "clone(properties)": (
        lambda t, _: t.clone("x", properties=5),
        ValueError,
        "needs to be a dict",
    ),
    "cloneAtVersion(version)": (
        lambda t, _: t.cloneAtVersion("0", "x"),
        ValueError,
        "needs to be an int",
    ),
    "cloneAtTimestamp(timestamp)": (
        lambda t, _: t.cloneAtTimestamp(5, "x"),
        ValueError,
        "needs to be a string",
    ),
    "restoreToVersion": (lambda t, _: t.restoreToVersion("x"), ValueError, "needs to be an int"),
    "restoreToTimestamp": (
        lambda t, _: t.restoreToTimestamp(5),
        ValueError,
        "needs to be a string",
    ),
    "executeZOrderBy": (lambda t, _: t.optimize().executeZOrderBy(5), TypeError, "must be str"),
    "executeZOrderBy of a list": (
        lambda t, _: t.optimize().executeZOrderBy(["id", 5]),
        TypeError,
        "must be str",
    ),
}

#: The same for the definition of a table.
OF_BUILDER: dict[str, tuple[Callable[[Any], object], type[Exception], str]] = {
    "tableName": (lambda b: b.tableName(5), TypeError, "must be str"),
    "location": (lambda b: b.location(5), TypeError, "must be str"),
    "comment": (lambda b: b.comment(5), TypeError, "must be str"),
    "addColumn(colName)": (lambda b: b.addColumn(5, "INT"), TypeError, "must be str"),
    "addColumn(dataType)": (lambda b: b.addColumn("a", 5), TypeError, "must be str or DataType"),
    "addColumn(nullable)": (lambda b: b.addColumn("a", "INT", 1), TypeError, "must be bool"),
    "addColumn(comment)": (lambda b: b.addColumn("a", "INT", comment=5), TypeError, "must be str"),
    "addColumn(generatedAlwaysAs)": (
        lambda b: b.addColumn("a", "INT", generatedAlwaysAs=5),
        TypeError,
        "must be str or IdentityGenerator",
    ),
    "addColumn(generatedByDefaultAs)": (
        lambda b: b.addColumn("a", "INT", generatedByDefaultAs="1"),
        TypeError,
        "must be IdentityGenerator",
    ),
    "addColumn, two generators": (
        lambda b: b.addColumn(
            "a", "BIGINT", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator()
        ),
        ValueError,
        "generatedByDefaultAs and generatedAlwaysAs cannot both be set",
    ),
    "addColumn, step": (
        lambda b: b.addColumn("a", "BIGINT", generatedAlwaysAs=IdentityGenerator(1, 0)),
        ValueError,
        STEP,
    ),
    "addColumns": (lambda b: b.addColumns(5), TypeError, "must be StructType"),
    "addColumns, a list": (lambda b: b.addColumns(["a"]), TypeError, "StructField"),
    "partitionedBy": (lambda b: b.partitionedBy(5), TypeError, "must be str"),
    "clusterBy": (lambda b: b.clusterBy("a", 5), TypeError, "must be str"),
    "property(key)": (lambda b: b.property(5, "x"), TypeError, "must be str"),
    "property(value)": (lambda b: b.property("x", 5), TypeError, "must be str"),
}


def require_error(call: Callable[[], object], kind: type[Exception], phrase: str) -> None:
    with pytest.raises(kind, match=re.escape(phrase)) as raised:
        call()
    assert isinstance(raised.value, InvalidArgumentError)
    assert raised.value.getSqlState() == "22023"


@pytest.fixture(scope="module")
def target(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = str(tmp_path_factory.mktemp("arguments") / "table")
    build_table(spark, path, "id BIGINT", [[(1,)]])
    return DeltaTable.forPath(spark, path)


@pytest.mark.parametrize("case", OF_TABLE)
def test_method_refuses_a_wrong_argument(
    spark: SparkSession, target: DeltaTable, case: str
) -> None:
    call, kind, phrase = OF_TABLE[case]
    require_error(lambda: call(target, spark.range(1)), kind, phrase)
    assert target.history().count() == 1, "nothing was changed"


@pytest.mark.parametrize("case", OF_BUILDER)
def test_builder_refuses_a_wrong_argument(spark: SparkSession, case: str) -> None:
    call, kind, phrase = OF_BUILDER[case]
    for builder in (DeltaTable.create(spark), DeltaTable.createOrReplace(spark)):
        require_error(partial(call, builder), kind, phrase)


def test_phrases_are_those_of_delta_spark() -> None:
    tables = pytest.importorskip("delta.tables")
    lines = inspect.getsource(tables)
    source = re.sub(r'"\s*\+?\s*\\?\s*"', "", lines)
    for _, _, phrase in [*OF_TABLE.values(), *OF_BUILDER.values()]:
        assert phrase in source, phrase


def test_only_a_builder_of_a_session_is_configured(spark: SparkSession) -> None:
    wrong: Any = spark
    phrase = "must be called with a SparkSession builder as the argument"
    require_error(lambda: configure_spark_with_delta_pip(wrong), TypeError, phrase)


def test_rows_are_ordered_by_a_list_of_columns(target: DeltaTable) -> None:
    result = target.optimize().executeZOrderBy(["id"]).select("metrics.zOrderStats").first()
    assert result is not None and result[0] is not None
