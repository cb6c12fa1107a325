"""Records that cross the bridge to the JVM, as ``bridge-messages.json`` declares them.

A record is a dataclass. Its JSON has a field for each attribute, under the name of the attribute
in camel case, or under the name that `json_name` gives. The JVM checks the same declaration
(``io.deltaic.spark.commit.Message``).
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar

_Record = TypeVar("_Record", bound="Message")
_JSON_NAME = "json"


def json_name(name: str) -> dict[str, str]:
    """Return the metadata of a dataclass field whose JSON field has another name."""
    return {_JSON_NAME: name}


def not_in_json() -> dict[str, str | None]:
    """Return the metadata of a dataclass field that does not cross the bridge."""
    return {_JSON_NAME: None}


class Message:
    """A record of the bridge. Subclasses are frozen dataclasses."""

    __slots__ = ()

    @classmethod
    def from_json(cls: type[_Record], body: Mapping[str, Any]) -> _Record:
        """Read a record; attributes that are absent or null get their defaults.

        Raises
        ------
        KeyError
            If an attribute without a default is absent.
        """
        values = {}
        for codec in codecs(cls):
            value = body.get(codec.key)
            if value is not None:
                values[codec.name] = codec.decode(value)
            elif codec.is_required:
                raise KeyError(codec.key)
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {codec.key: _encode(getattr(self, codec.name)) for codec in codecs(type(self))}

    def json(self) -> str:
        """Return the text of the record's JSON."""
        return json.dumps(self.to_json())


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """How one attribute is read and written.

    Attributes
    ----------
    key
        The name of the JSON field.
    declared
        The type as ``bridge-messages.json`` declares it.
    """

    name: str
    key: str
    declared: str
    is_required: bool
    decode: Callable[[Any], Any]


def codecs(record: type[Message]) -> tuple[Codec, ...]:
    """Return the codecs of a record's attributes."""
    found: tuple[Codec, ...] = _codecs(record)  # type: ignore[arg-type]
    return found


@cache
def _codecs(record: Any) -> tuple[Codec, ...]:
    hints = typing.get_type_hints(record)
    result = []
    for field in dataclasses.fields(record):
        key = field.metadata.get(_JSON_NAME, _camel_case(field.name))
        if key is None:
            continue
        declared, decode = _codec_of(hints[field.name])
        result.append(
            Codec(
                field.name,
                key,
                declared,
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING,
                decode,
            )
        )
    return tuple(result)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


_SCALARS: Mapping[Any, str] = {str: "string", bool: "boolean", int: "long"}


def _codec_of(hint: Any) -> tuple[str, Callable[[Any], Any]]:
    """Return the declared type of a type hint, and the function that reads its values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint], _same
    if origin in (types.UnionType, typing.Union):
        [inner] = [argument for argument in arguments if argument is not types.NoneType]
        declared, decode = _codec_of(inner)
        return f"{declared}?", lambda value: None if value is None else decode(value)
    if origin is tuple or origin is frozenset or origin is Sequence:
        declared, decode = _codec_of(arguments[0])
        make = frozenset if origin is frozenset else tuple
        return f"[{declared}]", lambda values: make(decode(value) for value in values)
    if origin is Mapping:
        if arguments[1] is Any:
            return "object", _same
        declared, decode = _codec_of(arguments[1])
        return f"{{{declared}}}", lambda values: {k: decode(v) for k, v in values.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "string", hint
    declared = hint.__name__ if issubclass(hint, Message) else "object"
    return declared, hint.from_json


def _same(value: Any) -> Any:
    return value


def _encode(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_encode(item) for item in value]
    return value
