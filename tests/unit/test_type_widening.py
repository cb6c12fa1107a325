"""The type changes that the protocol lists."""

from __future__ import annotations

import pytest

from deltaic.protocol.columns.type_widening import widens
from deltaic.protocol.schema import PrimitiveType


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("byte", "short"),
        ("byte", "integer"),
        ("byte", "long"),
        ("short", "long"),
        ("integer", "long"),
        ("integer", "double"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("integer", "decimal(10,0)"),
        ("short", "decimal(12,2)"),
        ("long", "decimal(20,0)"),
        ("decimal(6,2)", "decimal(8,2)"),
        ("decimal(6,2)", "decimal(9,4)"),
    ],
)
def test_wider_type(older: str, newer: str) -> None:
    assert widens(PrimitiveType(older), PrimitiveType(newer))
    assert not widens(PrimitiveType(newer), PrimitiveType(older))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("long", "double"),
        ("long", "float"),
        ("integer", "float"),
        ("integer", "string"),
        ("integer", "decimal(9,0)"),
        ("integer", "decimal(11,2)"),
        ("decimal(6,2)", "decimal(7,4)"),
        ("date", "timestamp"),
        ("string", "binary"),
    ],
)
def test_other_types_are_not_wider(older: str, newer: str) -> None:
    assert not widens(PrimitiveType(older), PrimitiveType(newer))
