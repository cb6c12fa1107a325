"""Types of columns and values of them for random workloads: in Python, and as SQL.

A value is what PySpark's ``collect`` gives for it, so that rows can be compared with what a table
returns. Each type has few values, the awkward ones among them, so that conditions meet rows.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A type.

    Attributes
    ----------
    values
        All but null.
    order
        Returns what stands for a value in Spark's order, or None where values are not compared.
    fields
        Of a struct, its fields.
    """

    ddl: str
    values: tuple[Any, ...]
    text: Callable[[Any], str]
    order: Callable[[Any], Any] | None = None
    fields: tuple[tuple[str, Kind], ...] = ()

    def literal(self, value: Any) -> str:
        """Return the SQL of a value or of null."""
        # Nothing but a column is of a type with a length.
        ddl = "STRING" if "CHAR" in self.ddl else self.ddl
        return f"CAST({'NULL' if value is None else self.text(value)} AS {ddl})"


def _same(value: Any) -> Any:
    return value


def _quoted(value: Any) -> str:
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def _float_order(value: float) -> tuple[int, float]:
    """NaN comes last and equals itself."""
    return (1, 0.0) if math.isnan(value) else (0, value)


def scalar(ddl: str, *values: Any, order: Callable[[Any], Any] = _same) -> Kind:
    """Return a type whose values Spark reads from a string."""
    return Kind(ddl, values, _quoted, order)


def struct_of(**fields: Kind) -> Kind:
    ddl = ", ".join(f"{name}: {kind.ddl}" for name, kind in fields.items())
    firsts = tuple(kind.values[0] for kind in fields.values())
    lasts = tuple(kind.values[-1] for kind in fields.values())
    nulls = (None,) * len(fields)

    def text(value: Any) -> str:
        inner = ", ".join(
            f"'{name}', {kind.literal(part)}"
            for (name, kind), part in zip(fields.items(), value, strict=True)
        )
        return f"named_struct({inner})"

    half = (*firsts[:1], *nulls[1:])
    return Kind(f"STRUCT<{ddl}>", (firsts, lasts, half, nulls), text, None, tuple(fields.items()))


def array_of(element: Kind) -> Kind:
    def text(value: Any) -> str:
        return f"array({', '.join(map(element.literal, value))})"

    values: tuple[Any, ...] = (
        [],
        [element.values[0]],
        [element.values[-1], None, element.values[0]],
    )
    return Kind(f"ARRAY<{element.ddl}>", values, text)


def map_of(value_kind: Kind) -> Kind:
    def text(value: Any) -> str:
        inner = (f"{_quoted(k)}, {value_kind.literal(v)}" for k, v in value.items())
        return f"map({', '.join(inner)})"

    first, last = value_kind.values[0], value_kind.values[-1]
    values: tuple[Any, ...] = ({}, {"k": first}, {"ä": last, "": None})
    return Kind(f"MAP<STRING, {value_kind.ddl}>", values, text)


def _local(*parts: int) -> dt.datetime:
    """Return a time of UTC as PySpark returns it: of this machine's zone, without saying so."""
    return dt.datetime(*parts, tzinfo=dt.timezone.utc).astimezone().replace(tzinfo=None)  # type: ignore[misc,arg-type]


def _utc_text(value: dt.datetime) -> str:
    return _quoted(value.astimezone(dt.timezone.utc).replace(tzinfo=None))


INT = scalar("INT", 0, -3, 7, 2_147_483_647)
BIGINT = scalar("BIGINT", 1, 0, -(2**63), 2**53 + 1)
SMALLINT = scalar("SMALLINT", 5, -32_768)
TINYINT = scalar("TINYINT", 1, -128)
STRING = scalar("STRING", "a", "", "ab", "ä%_", "it's \\", "🙂" * 12, order=lambda s: s.encode())
CHAR = scalar("CHAR(4)", "ab  ", "    ", "wxyz", "ä   ", order=lambda s: s.encode())
VARCHAR = scalar("VARCHAR(3)", "ab", "", "ab ", "äöü", order=lambda s: s.encode())
DECIMAL = scalar("DECIMAL(10,2)", Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99"))
WIDE_DECIMAL = scalar(
    "DECIMAL(38,18)", Decimal("0.000000000000000001"), Decimal("-12345678901234567890." + "9" * 18)
)
DOUBLE = scalar("DOUBLE", 1.5, 0.0, -0.0, math.nan, math.inf, -math.inf, order=_float_order)
FLOAT = scalar("FLOAT", 0.5, -0.0, math.nan, order=_float_order)
BOOLEAN = scalar("BOOLEAN", True, False)
DATE = scalar("DATE", dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1582, 10, 4))
TIMESTAMP = Kind(
    "TIMESTAMP",
    (_local(2024, 2, 29, 12, 0, 0, 1), _local(1969, 12, 31, 23, 59, 59, 999_999)),
    _utc_text,
    _same,
)
TIMESTAMP_NTZ = scalar(
    "TIMESTAMP_NTZ", dt.datetime(2024, 3, 31, 2, 30), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
)
BINARY = Kind(
    "BINARY", (b"\x00\xff", b"", b"\x80"), lambda value: f"X'{bytes(value).hex()}'", bytes
)
STRUCT = struct_of(x=INT, y=STRING)
DEEP_STRUCT = struct_of(x=DECIMAL, inner=struct_of(u=DATE, v=array_of(STRING)))
ARRAY = array_of(INT)
ARRAY_OF_STRUCTS = array_of(struct_of(x=TIMESTAMP, y=DOUBLE))
MAP = map_of(DECIMAL)
MAP_OF_STRUCTS = map_of(struct_of(x=BINARY, y=MAP))

KINDS = (
    INT,
    STRING,
    STRUCT,
    DECIMAL,
    DOUBLE,
    TIMESTAMP,
    ARRAY,
    MAP,
    BIGINT,
    SMALLINT,
    TINYINT,
    WIDE_DECIMAL,
    FLOAT,
    BOOLEAN,
    DATE,
    TIMESTAMP_NTZ,
    BINARY,
    DEEP_STRUCT,
    ARRAY_OF_STRUCTS,
    MAP_OF_STRUCTS,
    CHAR,
    VARCHAR,
)

#: Types of partition columns. An empty string is stored as null there.
PARTITION_KINDS = (
    scalar("STRING", "a", "a b", "x/y=z", "%41ä:", "'\"", order=lambda s: s.encode()),
    INT,
    DATE,
    TIMESTAMP,
    DECIMAL,
    BOOLEAN,
)
