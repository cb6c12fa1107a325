"""What `make release` has put into dist/: installed as users install it, and built once more."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from deltaic import __version__
from tests.support.paths import ROOT
from tests.support.spark_scripts import (
    SPARK_HOME,
    compile_scala,
    output_of,
    submit_options,
    user_environment,
)

DIST = ROOT / "dist"
WHEEL = DIST / f"deltaic-{__version__}-py3-none-any.whl"
AS_DELTA = DIST / f"deltaic_as_delta-{__version__}-py3-none-any.whl"
WHEELS = {
    "4.2": WHEEL,
    "4.3": DIST / "spark-4.3" / f"deltaic-{__version__}+spark4.3-py3-none-any.whl",
}
MAVEN = DIST / "maven" / "io" / "deltaic"
MODULES = ["deltaic-core", "deltaic-spark_4.2", "deltaic-delta-api_4.2"]
NEXT_MODULES = ["deltaic-spark_4.3", "deltaic-delta-api_4.3"]


def readme_example() -> str:
    """Return the first example in Python of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("line", WHEELS)
def test_wheel_is_small_and_says_what_it_is(line: str) -> None:
    assert WHEELS[line].stat().st_size < 5_000_000
    with ZipFile(WHEELS[line]) as wheel:
        names = wheel.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        described = Parser().parsestr(wheel.read(metadata).decode())
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Author-email"]
    assert described["Project-URL"]
    assert described.get_payload() == (ROOT / "README.md").read_text()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "deltaic/examples/quickstart.py" in names
    jars = {Path(name).name for name in names if name.endswith(".jar")}
    modules = ("deltaic-spark", "deltaic-delta-api")
    assert jars == {f"{module}_{line}_2.13-{__version__}.jar" for module in modules}
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.parametrize("line", WHEELS)
def test_first_example_of_the_readme_runs_from_the_wheel(line: str, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    environment = user_environment(without=["PYTHONPATH"], python=str(python))
    wheels = [str(WHEELS[line]), str(AS_DELTA)]
    subprocess.run([*install, *wheels], env=environment, check=True, timeout=900)
    program = tmp_path / "first.py"
    program.write_text(readme_example())
    assert output_of([str(python), str(program)], tmp_path, environment) == "5\n10\n"
    names = "from delta.tables import DeltaTable; print(DeltaTable.__module__)"
    assert output_of([str(python), "-c", names], tmp_path, environment) == "deltaic.tables\n"


@pytest.mark.parametrize("module", [*MODULES, *NEXT_MODULES])
def test_module_can_be_published_as_it_is(module: str) -> None:
    folder = MAVEN / f"{module}_2.13" / __version__
    stem = f"{module}_2.13-{__version__}"
    pom = (folder / f"{stem}.pom").read_text()
    for element in ("name", "description", "url", "license", "developer", "scm"):
        assert f"<{element}>" in pom, element
    for kind, suffix in (("", ".class"), ("-sources", ".scala"), ("-javadoc", ".html")):
        with ZipFile(folder / f"{stem}{kind}.jar") as jar:
            assert any(name.endswith(suffix) for name in jar.namelist()), kind


@pytest.mark.parametrize("module", [*MODULES, *NEXT_MODULES])
def test_bill_of_materials_has_nothing_but_our_modules(module: str) -> None:
    bom = json.loads((DIST / f"{module}-{__version__}.cdx.json").read_text())
    assert bom["bomFormat"] == "CycloneDX"
    assert (
        bom["metadata"]["component"]["purl"] == f"pkg:maven/io.deltaic/{module}_2.13@{__version__}"
    )
    others = [each for each in bom.get("components", []) if each["group"] != "io.deltaic"]
    # What Spark has is no part of ours.
    assert others == []


def test_scala_program_runs_with_the_published_jars(tmp_path: Path) -> None:
    jars = [
        MAVEN / f"{module}_2.13" / __version__ / f"{module}_2.13-{__version__}.jar"
        for module in MODULES
    ]
    source = ROOT / "examples" / "scala" / "OrdersJob.scala"
    program = compile_scala(source, tmp_path / "program.jar", *jars)
    packages = {
        "spark.jars": "",
        "spark.jars.packages": f"io.deltaic:deltaic-delta-api_4.2_2.13:{__version__}",
        "spark.jars.repositories": f"file://{DIST / 'maven'}",
        "spark.jars.ivy": str(tmp_path / "ivy"),
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--class", "OrdersJob"]
    arguments = [*submit_options(packages), str(program), str(tmp_path / "orders")]
    assert "|   open|   90|" in output_of([*command, *arguments], tmp_path)


def test_second_build_has_the_same_bytes(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    for tools in (".venv", ".tools"):
        (clone / tools).symlink_to(ROOT / tools)
    subprocess.run(["make", "--no-print-directory", "wheel"], cwd=clone, check=True, timeout=1800)
    for built in (WHEEL, AS_DELTA):
        again = clone / "dist" / built.name
        assert sha256(again) == sha256(built), differences(built, again)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of the entries that differ."""
    with ZipFile(one) as first, ZipFile(other) as second:
        found = [
            {entry.filename: entry.CRC for entry in each.infolist()} for each in (first, second)
        ]
    return sorted(
        name
        for name in found[0].keys() | found[1].keys()
        if found[0].get(name) != found[1].get(name)
    )
