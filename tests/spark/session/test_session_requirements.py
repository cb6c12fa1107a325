"""A session that cannot run all of Deltaic is refused at its first statement, with what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import __version__ as spark_version

from deltaic.exceptions import TableStateError
from deltaic.resources import load_json
from deltaic.session import require_tested_spark, spark_settings, supported_versions
from tests.support.paths import SPARK_LINE
from tests.support.session_settings import session_settings
from tests.support.spark_process import SparkProcess
from tests.support.table_builder import build_with_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"
CATALOG = "spark.sql.catalog.spark_catalog"
OPTIMIZER_RULES = [
    "io.deltaic.spark.sql.optimizer.ReadFreshRows",
    "io.deltaic.spark.sql.optimizer.RewriteReplaceWhere",
    "io.deltaic.spark.sql.optimizer.AlignScans",
    "io.deltaic.spark.sql.optimizer.RebalanceWrites",
]

#: Each assigns its outcome to `result`; SQL finds names only with the catalog.
STATEMENTS = {
    "read of a path": "spark.read.format('delta').load(path).collect()",
    "write to a path": "spark.range(1).write.format('delta').mode('append').save(path)",
    "write to a new path": "spark.range(1).write.format('delta').save(path + '-new')",
    "SELECT": "spark.sql(f'SELECT * FROM delta.`{path}`').collect()",
    "DELETE": "spark.sql(f'DELETE FROM delta.`{path}` WHERE id = 1')",
    "INSERT": "spark.sql(f'INSERT INTO delta.`{path}` VALUES (1)')",
    "CREATE TABLE": "spark.sql('CREATE TABLE made (id INT) USING delta')",
    "writeTo": "spark.range(1).writeTo(f'delta.`{path}`').append()",
}
BY_PATH = [name for name in STATEMENTS if "path" in name]


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("requirements") / "table")
    build_with_oracle(spark, folder, spark.range(3), deletion_vectors=True)
    return folder


def answer(process: SparkProcess, statement: str, path: str) -> str:
    code = f"""
try:
    {statement}
    result = "done"
except Exception as problem:
    result = str(problem)
"""
    found = process.run(code, path=path)
    assert isinstance(found, str)
    return found


#: What a session lacks, and what its error names: a condition, a setting and its value.
LACKS = {
    EXTENSIONS: ["DELTAIC_EXTENSION_MISSING", EXTENSIONS, "io.deltaic.spark.DeltaicExtension"],
    CATALOG: ["DELTAIC_CATALOG_MISSING", CATALOG, "io.deltaic.spark.DeltaicCatalog"],
}


@pytest.fixture(scope="module")
def lacking(request: pytest.FixtureRequest) -> Iterator[tuple[SparkProcess, str]]:
    """A session that lacks a setting of ours, and the setting."""
    settings = spark_settings()
    del settings[request.param]
    with SparkProcess(settings) as process:
        yield process, request.param


@pytest.mark.parametrize(
    ("lacking", "statement"),
    [*((EXTENSIONS, name) for name in STATEMENTS), *((CATALOG, name) for name in BY_PATH)],
    indirect=["lacking"],
)
def test_session_that_lacks_the_extension_or_the_catalog_is_refused(
    lacking: tuple[SparkProcess, str], path: str, statement: str
) -> None:
    process, setting = lacking
    refused = answer(process, STATEMENTS[statement], path)
    assert not [part for part in LACKS[setting] if part not in refused], refused
    assert not Path(path + "-new").exists()


def test_session_whose_catalog_has_another_name_reads_and_writes_paths(path: str) -> None:
    settings = spark_settings()
    settings["spark.sql.catalog.lake"] = settings.pop(CATALOG)
    with SparkProcess(settings) as process:
        assert answer(process, STATEMENTS["read of a path"], path) == "done"


@pytest.mark.parametrize("rule", OPTIMIZER_RULES)
def test_session_that_excludes_a_rule_of_ours_is_refused_until_it_does_not(
    spark: SparkSession, path: str, rule: str
) -> None:
    before = spark.read.format("delta").load(path)
    statements = [
        lambda: spark.read.format("delta").load(path),
        lambda: spark.sql(f"INSERT INTO delta.`{path}` VALUES (1)"),
        lambda: before.filter("id > 0").collect(),
    ]
    with session_settings(spark, {"spark.sql.optimizer.excludedRules": f"other, {rule}"}):
        for statement in statements:
            with pytest.raises(Exception, match="DELTAIC_RULES_MISSING") as refused:
                statement()
            assert rule.rpartition(".")[2] in str(refused.value)
            assert "spark.sql.optimizer.excludedRules" in str(refused.value)
    assert before.count() == 3


def test_session_that_analyzes_without_rules_of_extensions_is_refused(
    spark: SparkSession, path: str
) -> None:
    setting = "spark.sql.analyzer.singlePassResolver.enabled"
    with (
        session_settings(spark, {setting: "true"}),
        pytest.raises(Exception, match=rf"DELTAIC_RULES_MISSING(.|\n)*Set {setting} to false"),
    ):
        spark.sql(f"SELECT * FROM delta.`{path}`").collect()


def test_supported_versions_of_spark_are_accepted_and_those_of_their_vendors() -> None:
    assert require_tested_spark(spark_version) == SPARK_LINE
    for version in load_json("spark-versions.json")[SPARK_LINE]:
        assert require_tested_spark(f"{version}-vendor-2") == SPARK_LINE


@pytest.mark.parametrize("version", ["4.1.1", "4.2.2", "4.3.1", "4.2.0.1", "5.0.0", "main"])
def test_other_version_of_spark_is_refused_by_both_languages(
    spark: SparkSession, version: str
) -> None:
    expected = r"DELTAIC_SPARK_VERSION_UNSUPPORTED(.|\n)*works with Spark {}.*has Spark {}"
    everywhere, here = (
        expected.format(re.escape(", ".join(versions)), version)
        for versions in (supported_versions(), load_json("spark-versions.json")[SPARK_LINE])
    )
    with pytest.raises(TableStateError, match=everywhere):
        require_tested_spark(version)
    versions = getattr(spark._jvm.io.deltaic.spark.util, "SparkVersions$")  # type: ignore[union-attr]
    with pytest.raises(Exception, match=here):
        getattr(versions, "MODULE$").requireTested(version)
