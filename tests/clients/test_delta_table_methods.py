"""The methods of `DeltaTable` of a client do in the server what they do in a classic session."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deltaic import DeltaTable
from tests.support.delta_table_methods import METHODS, MORE_METHODS, PRELUDE
from tests.support.spark_process import SparkProcess

_numbers = itertools.count()

ALL = {**METHODS, **MORE_METHODS}

DELTAIC = "from deltaic.tables import DeltaTable, IdentityGenerator\n"
DELTA_SPARK = "from delta.tables import DeltaTable, IdentityGenerator\n"

#: What a table is, to a classic session: its rows, its history and its definition.
STATE = """
from deltaic import DeltaTable
table = DeltaTable.forPath(spark, path)
detail = table.detail().first()
names = sorted(table.toDF().columns)
result = dict(
    rows=sorted(map(str, table.toDF().select(names).collect())),
    history=[
        [row.operation, {k: v.replace(path, "path") for k, v in row.operationParameters.items()}]
        for row in table.history().collect()
    ],
    definition=[names, detail.properties, sorted(detail.tableFeatures), detail.numFiles],
)
"""


Method = tuple[Any, Any]
Classic = Callable[[str], Method]


def run(session: SparkProcess, imports: str, code: str, path: Path) -> Any:
    name = f"methods_{next(_numbers)}"
    return session.run(imports + PRELUDE + code, path=str(path), name=name)


@pytest.fixture(scope="module")
def in_classic_session(classic: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> Classic:
    """Runs a method in a classic session; returns its result and the state of the table."""

    @cache
    def result(method: str) -> Method:
        path = tmp_path_factory.mktemp("classic") / "table"
        found = run(classic, DELTAIC, ALL[method][0], path)
        return found, classic.run(STATE, path=str(path))

    return result


def require_same(
    client: SparkProcess, imports: str, classic: SparkProcess, same: Method, path: Path, method: str
) -> None:
    code, expected = ALL[method]
    assert run(client, imports, code, path) == expected
    result, state = same
    assert result == expected
    assert classic.run(STATE, path=str(path)) == state


@pytest.mark.parametrize("method", ALL)
def test_client_of_deltaic_does_what_a_classic_session_does(
    connect_client: SparkProcess,
    classic: SparkProcess,
    in_classic_session: Classic,
    tmp_path: Path,
    method: str,
) -> None:
    same = in_classic_session(method)
    require_same(connect_client, DELTAIC, classic, same, tmp_path / "table", method)


@pytest.mark.parametrize("method", METHODS)
def test_client_of_delta_spark_does_what_a_classic_session_does(
    connect_client: SparkProcess,
    classic: SparkProcess,
    in_classic_session: Classic,
    tmp_path: Path,
    method: str,
) -> None:
    same = in_classic_session(method)
    require_same(connect_client, DELTA_SPARK, classic, same, tmp_path / "table", method)


def test_every_public_method_is_tried() -> None:
    code = "\n".join(code for code, _ in ALL.values())
    methods = {name for name, _ in inspect.getmembers(DeltaTable, callable) if name[0] != "_"}
    methods -= {"forPath"}  # By the prelude of each.
    assert not {name for name in methods if f".{name}(" not in code}
