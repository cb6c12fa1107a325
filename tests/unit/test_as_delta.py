"""The package ``delta`` of Deltaic has the public names of delta-spark, and refuses another one."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deltaic
from deltaic import install_as_delta
from deltaic.as_delta import MODULES
from deltaic.exceptions import TableStateError
from tests.support.paths import ROOT

PACKAGE = ROOT / "python" / "as-delta"


@pytest.fixture
def imported() -> Iterator[None]:
    """Nothing named ``delta`` is imported before the test; afterwards everything is as it was."""

    def loaded() -> list[str]:
        return [name for name in sys.modules if name == "delta" or name.startswith("delta.")]

    before = {name: sys.modules.pop(name) for name in loaded()}
    yield
    for name in loaded():
        del sys.modules[name]
    sys.modules.update(before)


def public_names(module: str) -> set[str]:
    """Return the public names that delta-spark defines, or lists, in a module."""
    theirs = importlib.import_module(module)
    listed = getattr(theirs, "__all__", None)
    if listed is not None:
        return set(listed)
    return {
        name
        for name, value in vars(theirs).items()
        if getattr(value, "__module__", None) == module and not name.startswith("_")
    } | ({"__version__"} & vars(theirs).keys())


@pytest.mark.parametrize("module", MODULES)
def test_modules_have_every_public_name_of_delta_spark(imported: None, module: str) -> None:
    names = public_names(module)
    assert names and names <= set(MODULES[module][1])
    for name in [each for each in sys.modules if each.split(".")[0] == "delta"]:
        del sys.modules[name]
    install_as_delta()
    ours = importlib.import_module(module)
    assert set(ours.__all__) == set(MODULES[module][1])
    source = importlib.import_module(MODULES[module][0])
    assert all(getattr(ours, name) is getattr(source, name) for name in ours.__all__)


def test_programs_import_it_in_every_way(imported: None) -> None:
    install_as_delta()
    install_as_delta()
    code = """
import delta
import delta.tables as tables
from delta import *
from delta.exceptions import ConcurrentAppendException
assert delta.tables is tables and delta.DeltaTable is tables.DeltaTable is DeltaTable
"""
    for module in MODULES:
        assert importlib.util.find_spec(module) is not None
    names: dict[str, object] = {}
    exec(code, names)
    assert names["DeltaTable"] is deltaic.DeltaTable
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("delta.connect")


def test_package_that_was_imported_before_is_named(imported: None) -> None:
    theirs = importlib.import_module("delta")
    with pytest.raises(TableStateError) as raised:
        install_as_delta()
    assert raised.value.condition == "DELTAIC_DELTA_IMPORTED"
    assert raised.value.parameters["file"] == theirs.__file__
    assert importlib.import_module("delta.tables").DeltaTable is not deltaic.DeltaTable


@pytest.mark.parametrize("module", MODULES)
def test_wheel_has_the_same_modules_and_names(module: str) -> None:
    code = f"import json, {module} as m; print(json.dumps([m.__file__, sorted(m.__all__)]))"
    result = run(code, before="importlib.metadata.version = missing")
    file, names = json.loads(result.stdout)
    assert Path(file).is_relative_to(PACKAGE)
    assert names == sorted(MODULES[module][1])


def test_wheel_refuses_to_stand_beside_delta_spark() -> None:
    result = run("import delta", check=False)
    assert result.returncode
    assert "ImportError: deltaic-as-delta and delta-spark" in result.stderr
    assert "pip uninstall delta-spark deltaic-as-delta" in result.stderr


def test_wheel_is_of_the_same_version() -> None:
    project = (PACKAGE / "pyproject.toml").read_text()
    version = deltaic.__version__
    assert f'\nversion = "{version}"\n' in project
    assert f'\ndependencies = ["deltaic=={version}"]\n' in project


def run(code: str, *, before: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which the wheel's package comes first, beside delta-spark."""
    setup = f"""
import importlib.metadata, sys
sys.path.insert(0, {str(PACKAGE)!r})
def missing(name):
    raise importlib.metadata.PackageNotFoundError(name)
{before}
"""
    return subprocess.run(
        [sys.executable, "-c", setup + code],
        check=check,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": ""},
    )
