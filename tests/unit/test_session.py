"""What users do before there is a session; no JVM is started here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deltaic import DeltaTable, configure_spark, configure_spark_with_delta_pip
from deltaic.__main__ import main
from deltaic._version import __version__
from deltaic.exceptions import InvalidArgumentError, TableStateError
from deltaic.resources import load_json
from deltaic.session import (
    CATALOG,
    EXTENSION,
    delta_api_jar_path,
    jar_path,
    require_tested_spark,
    supported_versions,
)
from tests.support.paths import ROOT


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "deltaic-spark_4.2_2.13-test.jar"
    path.touch()
    monkeypatch.setenv("DELTAIC_JAR", str(path))
    return path


@pytest.fixture
def builder() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder


def test_builder_gets_extension_catalog_and_jar(builder: Any, jar: Path) -> None:
    assert configure_spark(builder) is builder
    assert builder._options["spark.sql.extensions"] == EXTENSION
    assert builder._options["spark.sql.catalog.spark_catalog"] == CATALOG
    assert builder._options["spark.jars"] == str(jar)


def test_builder_keeps_what_it_has(builder: Any, jar: Path) -> None:
    builder.config("spark.sql.extensions", "com.example.Other").config(
        "spark.jars", "/a.jar,/b.jar"
    )
    configure_spark(builder)
    assert builder._options["spark.sql.extensions"] == f"com.example.Other,{EXTENSION}"
    assert builder._options["spark.jars"] == f"/a.jar,/b.jar,{jar}"


def test_names_of_delta_spark_are_replaced(builder: Any, jar: Path) -> None:
    builder.config(
        "spark.sql.extensions", "com.example.Other,io.delta.sql.DeltaSparkSessionExtension"
    ).config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    ).config("spark.jars.packages", "com.example:first:1")
    configure_spark_with_delta_pip(builder, extra_packages=["com.example:second:1"])
    assert builder._options["spark.sql.extensions"] == f"com.example.Other,{EXTENSION}"
    assert builder._options["spark.sql.catalog.spark_catalog"] == CATALOG
    assert builder._options["spark.jars.packages"] == "com.example:first:1,com.example:second:1"


def test_builder_may_be_configured_twice(builder: Any, jar: Path) -> None:
    configure_spark(builder)
    create = builder.getOrCreate
    configure_spark(builder)
    assert builder.getOrCreate is create
    assert builder._options["spark.sql.extensions"] == EXTENSION
    assert builder._options["spark.jars"] == str(jar)


def test_other_builders_stay_as_they_are(builder: Any, jar: Path) -> None:
    from pyspark.sql import SparkSession

    configure_spark(builder)
    assert "getOrCreate" not in vars(SparkSession.builder)


def test_catalog_that_is_taken_is_refused(builder: Any, jar: Path) -> None:
    builder.config("spark.sql.catalog.spark_catalog", "com.example.Catalog")
    with pytest.raises(InvalidArgumentError, match=r"com\.example\.Catalog"):
        configure_spark(builder)


def test_missing_jar_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTAIC_JAR", str(tmp_path / "nowhere.jar"))
    with pytest.raises(TableStateError, match="make build"):
        jar_path()


def test_module_prints_version_jar_and_settings(
    jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings"]) == 0
    printed = capsys.readouterr().out
    assert f"Deltaic {__version__}" in printed
    assert f"--conf spark.sql.extensions={EXTENSION}" in printed
    assert f"--conf spark.jars={jar}" in printed


def test_module_prints_the_jar_alone(jar: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar"]) == 0
    assert capsys.readouterr().out == f"{jar}\n"


def test_module_prints_both_jars_and_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jar", "--delta-api"]) == 0
    assert capsys.readouterr().out == f"{jar_path()},{delta_api_jar_path()}\n"
    assert main(["examples"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder == ROOT / "examples"
    assert (folder / "scala" / "OrdersJob.scala").is_file()


def test_module_says_that_the_jar_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DELTAIC_JAR", "/nowhere.jar")
    assert main(["jar"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "nowhere.jar in /" in captured.err


def test_module_refuses_other_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_status:
        main(["jars"])
    assert exit_status.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_module_without_arguments_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    for command in ("inspect", "validate", "settings", "jar"):
        assert f"\n    {command} " in printed


@pytest.mark.parametrize("command", [[], ["inspect"], ["validate"], ["settings"], ["jar"]])
def test_each_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_status:
        main([*command, "--help"])
    assert exit_status.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: python -m deltaic", *command]))


def test_version_names_deltaic_and_spark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_status:
        main(["--version"])
    assert exit_status.value.code == 0
    versions = ", ".join(supported_versions())
    assert capsys.readouterr().out == f"Deltaic {__version__} for Spark {versions}\n"


def test_package_is_imported_without_pyspark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['py4j'] = None; "
        "import deltaic.commit.transaction, deltaic.commands.registry; "
        "from deltaic import DeltaTable, configure_spark"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": _package_parent()})


@pytest.mark.parametrize("path", ["", None, 3])
def test_path_that_is_no_string_is_refused(path: Any) -> None:
    session: Any = None
    for call in (DeltaTable.forPath, DeltaTable.forName, DeltaTable.isDeltaTable):
        with pytest.raises(InvalidArgumentError, match="a string that is not empty"):
            call(session, path)


@pytest.mark.parametrize("limit", [-1, 1.5, "3", True])
def test_history_limit_that_is_no_number_from_zero_on_is_refused(limit: Any) -> None:
    session: Any = None
    with pytest.raises(InvalidArgumentError, match="limit"):
        DeltaTable(session, "/t").history(limit)


@pytest.mark.parametrize(
    "settings", [{"spark.sql.shuffle.partitions": "7"}, {"fs.key": 3}, {3: "x"}, "fs.key", 3]
)
def test_settings_that_are_none_of_a_file_system_are_refused(settings: Any) -> None:
    session: Any = None
    with pytest.raises(InvalidArgumentError, match=r"begin with fs\. or dfs\."):
        DeltaTable.forPath(session, "/t", settings)


def test_refused_settings_are_named_without_their_values() -> None:
    session: Any = None
    with pytest.raises(InvalidArgumentError, match=r"secret\.key") as caught:
        DeltaTable.forPath(session, "/t", {"secret.key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def _package_parent() -> str:
    import deltaic

    return str(Path(deltaic.__file__).parents[1])


def test_package_depends_on_the_supported_versions_of_spark() -> None:
    tested = load_json("spark-versions.json")["4.2"]
    project = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
    assert f'dependencies = ["pyspark>={tested[0]},<={tested[-1]}"]' in project


def test_wheel_supports_the_versions_that_it_has_a_jar_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = load_json("spark-versions.json")
    monkeypatch.delenv("DELTAIC_JAR", raising=False)
    monkeypatch.setattr("deltaic.session._JARS", tmp_path)
    assert supported_versions() == [*every["4.2"], *every["4.3"]]
    (tmp_path / "deltaic-spark_4.2_2.13-0.1.0.jar").touch()
    assert supported_versions() == every["4.2"]
    with pytest.raises(TableStateError, match=r"works with Spark 4\.2\.0, 4\.2\.1\."):
        require_tested_spark("4.3.0")


def test_builder_is_refused_with_a_spark_that_is_not_tested(
    builder: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.4.0")
    with pytest.raises(TableStateError, match=r"4\.2\.1, 4\.3\.0\. The session has Spark 4\.4"):
        configure_spark(builder)
    assert EXTENSION not in str(builder._options)
