"""The protobuf messages that a client sends, as ``connect-messages.json`` declares them.

The declaration has the number and the type of each field. With it a message is a few lines of
encoding. So the package needs no generated classes, which have to be registered in a process once:
those of delta-spark's client have the same names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deltaic.resources import load_json

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_MAX_UINT64 = 2**64 - 1


def encode(message: str, fields: Mapping[str, Any], client: Any) -> bytes:
    """Return a message in the format of protobuf.

    Parameters
    ----------
    message
        Its full name, such as ``delta.connect.DeltaTable``.
    fields
        The values by name: a mapping for a message, a list for a repeated field, a plan of
        PySpark for a relation, a Column for an expression. A field whose value is None is not set.
    client
        The client of the session, which plans and Columns need.
    """
    declared: Mapping[str, str] = load_json("connect-messages.json")[message]
    parts = []
    for name, value in fields.items():
        number, kind = declared[name].split(" ", 1)
        parts += [_field(int(number), *one) for one in _values(kind, value, client)]
    return b"".join(parts)


def _values(kind: str, value: Any, client: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the wire type and the bytes of each value of a field."""
    if value is None:
        return
    if kind == "{string}":
        for key, text in value.items():
            entry = _field(1, _BYTES, _text(key)) + _field(2, _BYTES, _text(text))
            yield _BYTES, entry
    elif kind.startswith("["):
        for item in value:
            yield from _values(kind[1:-1], item, client)
    elif kind in _SCALARS:
        yield _SCALARS[kind](value)
    elif kind == "spark.connect.Relation":
        yield _BYTES, value.plan(client).SerializeToString()
    elif kind == "spark.connect.Expression":
        yield _BYTES, value.to_plan(client).SerializeToString()
    else:
        yield _BYTES, encode(kind, value, client)


def _field(number: int, wire_type: int, value: bytes) -> bytes:
    length = _varint(len(value)) if wire_type == _BYTES else b""
    return _varint(number << 3 | wire_type) + length + value


def _varint(value: int) -> bytes:
    """Return seven bits a byte, the lowest first; all but the last have the highest bit set."""
    rest = value & _MAX_UINT64  # A negative number is sent as its two's complement.
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _text(value: str) -> bytes:
    return value.encode()


_SCALARS: Mapping[str, Callable[[Any], tuple[int, bytes]]] = {
    "string": lambda value: (_BYTES, _text(value)),
    "bool": lambda value: (_VARINT, _varint(int(value))),
    "int32": lambda value: (_VARINT, _varint(value)),
    "int64": lambda value: (_VARINT, _varint(value)),
    "double": lambda value: (_FIXED64, struct.pack("<d", value)),
}
