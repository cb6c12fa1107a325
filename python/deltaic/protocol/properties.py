"""Table properties: their names, allowed values and defaults.

``resources/table-properties.json`` has one record for each. A property that delta-spark does not
have is in the ``deltaic.`` namespace, because other engines reject unknown ``delta.`` properties.
Properties of other namespaces are the user's own and are stored as they are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

from deltaic.exceptions import error
from deltaic.protocol.actions import READER_VERSION_WITH_FEATURES, WRITER_VERSION_WITH_FEATURES
from deltaic.protocol.numbers import whole_number
from deltaic.resources import load_json

PREFIX = "delta."
OWN_PREFIX = "deltaic."
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."
#: Properties of engines that also provide the table in other formats; they are not checked.
UNIVERSAL_FORMAT_PREFIX = "delta.universalformat.config."

#: Whether every commit writes symlink manifests, for engines that do not read the log.
SYMLINK_MANIFEST_PROPERTY = "delta.compatibility.symlinkFormatManifest.enabled"

#: The version before which log cleanup deletes all or nothing, by `checkpointProtection`.
PROTECTED_VERSION_PROPERTY = "delta.requireCheckpointProtectionBeforeVersion"
CHECKPOINT_PROTECTION = "checkpointProtection"

_MIN_READER_VERSION = "delta.minReaderVersion"
_MIN_WRITER_VERSION = "delta.minWriterVersion"
_IGNORE_DEFAULTS = "delta.ignoreProtocolDefaults"
_REQUESTS = frozenset({_MIN_READER_VERSION, _MIN_WRITER_VERSION, _IGNORE_DEFAULTS})
_FEATURE_VALUES = frozenset({"supported", "enabled"})

PropertyType = Literal["boolean", "int", "long", "ratio", "interval", "string", "enum"]


@dataclass(frozen=True, slots=True)
class TableProperty:
    """One table property.

    Attributes
    ----------
    name
        With the prefix ``delta.`` or ``deltaic.``.
    default
        The default value; None if there is none.
    values
        The values of an enum.
    minimum
        The smallest number allowed.
    internal
        Whether only Deltaic itself may set it.
    replaced_by
        The newer name, if this is a legacy name of a property.
    stands_for
        The properties whose value this is where they are not set.
    supported
        Whether this build supports the property; if not, setting it is refused.
    instead
        Advice for users if it is not supported.
    required_by_writers
        Whether a writer that does not support the property must not write to a table that has it.
        Other unsupported properties, set by another engine, are ignored on write: no data is lost.
    """

    name: str
    type: PropertyType
    default: str | None
    values: tuple[str, ...] = ()
    minimum: int | None = None
    internal: bool = False
    replaced_by: str | None = None
    stands_for: tuple[str, ...] = ()
    supported: bool = True
    instead: str = ""
    required_by_writers: bool = False

    def is_asked_for(self, value: str) -> bool:
        """Whether a value of an unsupported property enables it."""
        return value.strip().casefold() not in ("", "false")

    def problem_with(self, value: str) -> str | None:
        """Return why `value` is not valid, or None if it is."""
        match self.type:
            case "boolean":
                fits = value.casefold() in ("true", "false")
                return None if fits else "it is true or false"
            case "int" | "long":
                return self._problem_with_number(value)
            case "ratio":
                number = _decimal(value)
                fits = number is not None and 0 <= number <= 1
                return None if fits else "it is a number from 0 to 1"
            case "interval":
                fits = interval_ms(value) is not None
                return (
                    None if fits else "it is a duration such as 'interval 30 days', without months"
                )
            case "enum":
                fits = value.casefold() in (v.casefold() for v in self.values)
                return None if fits else f"it is one of {', '.join(self.values)}"
            case "string":
                return None

    def _problem_with_number(self, value: str) -> str | None:
        number = whole_number(value)
        if number is None:
            return "it is a whole number"
        bits = 31 if self.type == "int" else 63
        if not -(2**bits) <= number < 2**bits:
            return f"it is a number of {bits + 1} bits"
        if self.minimum is not None and number < self.minimum:
            return f"it is at least {self.minimum}"
        return None


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """The protocol requested by table properties, which are not stored with the table."""

    min_reader_version: int | None = None
    min_writer_version: int | None = None
    features: tuple[str, ...] = ()
    ignore_defaults: bool = False


@dataclass(frozen=True, slots=True)
class CheckedProperties:
    """Checked properties of a user: those to store, and the protocol that they request."""

    configuration: Mapping[str, str]
    request: ProtocolRequest


@cache
def all_properties() -> tuple[TableProperty, ...]:
    """Return every table property that is known."""
    return tuple(
        TableProperty(
            name=record["name"],
            type=record["type"],
            default=record["default"],
            values=tuple(record.get("values", ())),
            minimum=record.get("minimum"),
            internal=record.get("internal", False),
            replaced_by=record.get("replacedBy"),
            stands_for=tuple(record.get("standsFor", ())),
            supported=record.get("supported", True),
            instead=record.get("instead", ""),
            required_by_writers=record.get("requiredByWriters", False),
        )
        for record in load_json("table-properties.json")
    )


def find_property(name: str) -> TableProperty | None:
    """Return the property of this name; names are case-insensitive."""
    return _by_name().get(name.casefold())


def recognized_defaults(defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the session's defaults for new tables that name a known property or a feature.

    Others may be for another engine or a later version, and are ignored, as in delta-spark.
    """
    return {
        name: value
        for name, value in defaults.items()
        if name.casefold().startswith(FEATURE_PREFIX)
        or ((known := find_property(name)) is not None and not known.internal)
    }


def check_properties(
    table: str,
    given: Mapping[str, str],
    *,
    any_name: bool = False,
    copied: Mapping[str, str] | None = None,
) -> CheckedProperties:
    """Check the properties of a new definition and separate those that request a protocol.

    Names are stored in their documented spelling, values as they are given.

    Parameters
    ----------
    any_name
        Whether unknown properties of the namespaces are stored.
    copied
        The properties of another table; a property that is equal to its copy is stored without
        checks, except that it must be supported.

    Raises
    ------
    InvalidArgumentError
        If a property of ``delta.`` or ``deltaic.`` is unknown and that is not allowed, or if it is
        internal or not supported, or if its value is not valid.
    """
    configuration: dict[str, str] = {}
    requests: dict[str, str] = {}
    features: list[str] = []
    for name, value in given.items():
        folded = name.casefold()
        if copied is not None and copied.get(name) == value:
            _require_supported(table, find_property(name), value)
            configuration[name] = value
        elif folded.startswith(CONSTRAINT_PREFIX):
            raise error("DELTAIC_CONSTRAINT_AS_PROPERTY", table=table, property=name)
        elif folded.startswith(FEATURE_PREFIX):
            if value.casefold() not in _FEATURE_VALUES:
                raise _invalid(table, name, value, "it is 'supported'")
            features.append(name[len(FEATURE_PREFIX) :])
        elif folded.startswith((PREFIX, OWN_PREFIX)):
            may_be_unknown = any_name or folded.startswith(UNIVERSAL_FORMAT_PREFIX)
            if may_be_unknown and find_property(name) is None:
                configuration[name] = value
                continue
            known = _require_known(table, name, value)
            (requests if known.name in _REQUESTS else configuration)[
                known.replaced_by or known.name
            ] = value
        else:
            configuration[name] = value
    return CheckedProperties(configuration, _request(table, requests, features))


def is_true(configuration: Mapping[str, str], name: str) -> bool:
    """Return a boolean property's value, or its default."""
    return property_value(configuration, name).casefold() == "true"


def property_value(configuration: Mapping[str, str], name: str) -> str:
    """Return a property's value, or its default; the empty string if it has none."""
    value = explicit_value(configuration, name)
    if value is not None:
        return value
    known = find_property(name)
    return (known.default if known is not None else None) or ""


def explicit_value(configuration: Mapping[str, str], name: str) -> str | None:
    """Return the value that a table sets for a property; None if it is not set.

    Other writers may store legacy names; the newer name takes precedence.
    """
    return next((configuration[n] for n in spellings(name) if n in configuration), None)


def checked_value(table: str, configuration: Mapping[str, str], name: str) -> str:
    """Return a property's value, or its default, after checking it.

    The writer that stored it may not have checked it.

    Raises
    ------
    TableStateError
        If the value is not valid.
    """
    known = find_property(name)
    assert known is not None, name
    value = property_value(configuration, name)
    problem = known.problem_with(value)
    if problem is not None:
        raise error(
            "DELTAIC_INVALID_STORED_PROPERTY",
            table=table,
            property=name,
            value=value,
            reason=problem,
        )
    return value


def checked_number(table: str, configuration: Mapping[str, str], name: str) -> int:
    """Return the value of a numeric property; 0 if it is neither set nor has a default.

    Raises
    ------
    TableStateError
        As `checked_value`.
    """
    if explicit_value(configuration, name) is None and not property_value(configuration, name):
        return 0
    return int(checked_value(table, configuration, name))


_AMOUNT = r"[+-]?(?:\d+(?:\.\d{0,9})?|\.\d{1,9})"
#: ASCII, as in the JVM, whose digits, letters and spaces these are.
_FLAGS = re.IGNORECASE | re.ASCII
_INTERVAL = re.compile(rf"\s*(?:interval\s+)?((?:{_AMOUNT}\s+[a-z]+\s*)+)", _FLAGS)
_INTERVAL_PART = re.compile(rf"({_AMOUNT})\s+([a-z]+)", _FLAGS)
#: The JVM subtracts it from the current time, which must not overflow.
_LONGEST_MS = (2**63 - 1) // 2
_UNIT_MICROS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def interval_ms(text: str) -> int | None:
    """Return a duration in milliseconds; None if it is not one, or its length is not fixed.

    The format is Spark's: only seconds may have a fraction. A duration that overflows is none.
    """
    whole = _INTERVAL.fullmatch(text)
    if whole is None:
        return None
    total_micros = 0
    for amount, unit in _INTERVAL_PART.findall(whole[1]):
        name = unit.casefold().removesuffix("s")
        unit_micros = _UNIT_MICROS.get(name)
        if unit_micros is None or ("." in amount and name != "second"):
            return None
        total_micros += int(Fraction(amount) * unit_micros)
    total_ms = total_micros // 1000
    return total_ms if 0 <= total_ms <= _LONGEST_MS else None


def unsupported_properties(configuration: Mapping[str, str]) -> tuple[TableProperty, ...]:
    """Return the properties of a table that are enabled but not supported by this build."""
    return tuple(
        known
        for known in all_properties()
        if not known.supported and known.is_asked_for(configuration.get(known.name, ""))
    )


def require_no_writer_binding_properties(
    table: str, version: int, configuration: Mapping[str, str]
) -> None:
    """Refuse to write if an unsupported property binds writers.

    Parameters
    ----------
    configuration
        The table's properties after the write.

    Raises
    ------
    TableStateError
        Naming the property.
    """
    for known in unsupported_properties(configuration):
        if known.required_by_writers:
            raise error(
                "DELTAIC_UNSUPPORTED_WRITER_PROPERTY",
                table=table,
                version=version,
                property=known.name,
                value=configuration[known.name],
            )


@cache
def spellings(name: str) -> tuple[str, ...]:
    """Return the names under which a property is read, with legacy names last."""
    return (
        name,
        *(
            known.name
            for known in all_properties()
            if known.replaced_by == name or name in known.stands_for
        ),
    )


@cache
def _by_name() -> dict[str, TableProperty]:
    return {known.name.casefold(): known for known in all_properties()}


def _decimal(text: str) -> float | None:
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _require_known(table: str, name: str, value: str) -> TableProperty:
    known = find_property(name)
    if known is None:
        names = {p.name.casefold(): p.name for p in all_properties() if not p.internal}
        close = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.7)
        hint = f"Did you mean {names[close[0]]}?" if close else "There is no property like it."
        raise error("DELTAIC_UNKNOWN_TABLE_PROPERTY", table=table, property=name, hint=hint)
    if known.internal:
        raise error("DELTAIC_INTERNAL_TABLE_PROPERTY", table=table, property=known.name)
    problem = known.problem_with(value)
    if problem is not None:
        raise _invalid(table, known.name, value, problem)
    _require_supported(table, known, value)
    return known


def _require_supported(table: str, known: TableProperty | None, value: str) -> None:
    if known is not None and not known.supported and known.is_asked_for(value):
        raise error(
            "DELTAIC_UNSUPPORTED_TABLE_PROPERTY",
            table=table,
            property=known.name,
            value=value,
            instead=known.instead,
        )


def _request(table: str, requests: Mapping[str, str], features: list[str]) -> ProtocolRequest:
    def version(name: str, newest: int) -> int | None:
        if name not in requests:
            return None
        number = int(requests[name])
        if number > newest:
            raise _invalid(table, name, requests[name], f"the newest version is {newest}")
        return number

    return ProtocolRequest(
        version(_MIN_READER_VERSION, READER_VERSION_WITH_FEATURES),
        version(_MIN_WRITER_VERSION, WRITER_VERSION_WITH_FEATURES),
        tuple(features),
        is_true(requests, _IGNORE_DEFAULTS),
    )


def _invalid(table: str, name: str, value: str, reason: str) -> Exception:
    return error(
        "DELTAIC_INVALID_TABLE_PROPERTY", table=table, property=name, value=value, reason=reason
    )
