"""The errors of Deltaic: one base class, and the names that delta-spark's users catch.

An error is a *condition* with parameters. The conditions, their messages, SQLSTATEs and classes are
in ``resources/error-conditions.json``, which the JVM reads too, so that an error says the same on
whichever side it arises.

An error is an instance of one of these classes and of the class of PySpark that its condition
names: a missing table is a `TableStateError` and a ``pyspark.errors.AnalysisException``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.resources import load_json

#: What is raised when no other condition applies: a bug in Deltaic.
INTERNAL_ERROR = "DELTAIC_INTERNAL_ERROR"

#: SQLSTATE of an internal error of a data source.
_INTERNAL_SQL_STATE = "XXKDS"

#: Control characters, but for line feeds and tabs, and the character for bytes that are no text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")

_PARAMETER = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>")


class DeltaError(Exception):
    """Any failure that Deltaic reports.

    Parameters
    ----------
    condition
        A key of ``error-conditions.json``, such as ``DELTAIC_LOG_GAP``.
    parameters
        A value for each ``<name>`` in the condition's message.
    message
        The message, when it was rendered elsewhere; by default it is rendered here.

    Attributes
    ----------
    condition : str
        The condition, for code that handles one error and not another.
    parameters : dict of str to str
        What the message was filled with.
    """

    def __init__(
        self,
        condition: str,
        parameters: Mapping[str, str] | None = None,
        message: str | None = None,
    ) -> None:
        self.condition = condition
        self.parameters = dict(parameters or {})
        # PySpark's classes are initialised with other arguments, none of which is used here.
        self.args = (message if message is not None else render(condition, self.parameters),)

    @property
    def message(self) -> str:
        """The message with its condition and SQLSTATE."""
        return str(self.args[0])

    @property
    def desc(self) -> str:
        """`message`, by the name that PySpark's own errors had for it."""
        return self.message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.condition, self.parameters, self.message)

    # The methods of pyspark.errors.PySparkException.

    def getCondition(self) -> str:
        """Return the condition, such as ``DELTAIC_LOG_GAP``."""
        return self.condition

    def getErrorClass(self) -> str:
        """Return the condition; deprecated in PySpark in favour of `getCondition`."""
        warnings.warn("Deprecated in 4.0.0, use getCondition instead.", FutureWarning, stacklevel=2)
        return self.condition

    def getSqlState(self) -> str:
        """Return the SQLSTATE of the condition."""
        return sql_state(self.condition)

    def getMessageParameters(self) -> dict[str, str]:
        """Return what the message was filled with."""
        return self.parameters

    def getMessage(self) -> str:
        """Return the message with its condition and SQLSTATE."""
        return self.message

    def getQueryContext(self) -> list[Any]:
        """Return where in a query the error is: errors of Deltaic do not say."""
        return []

    def getBreakingChangeInfo(self) -> dict[str, Any] | None:
        """Return how to migrate from what a newer Spark changed: errors of Deltaic have no such."""
        return None


class ProtocolError(DeltaError):
    """The log says something that the Delta protocol, or this build, does not allow."""


class TableStateError(DeltaError):
    """The table is not in a state in which the operation is possible."""


class InvalidArgumentError(DeltaError, ValueError):
    """An argument, option, property or schema given by the user is not valid."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument is of a type that it cannot be."""


class ConcurrentModificationError(DeltaError):
    """Another commit got in between, and this one cannot follow it. Nothing was changed.

    The operation can be run again: it will see the version that it lost to.
    """

    @property
    def table(self) -> str:
        """The table."""
        return self.parameters["table"]

    @property
    def winning_version(self) -> int:
        """The version that the other commit is."""
        return int(self.parameters["version"])

    @property
    def winning_operation(self) -> str | None:
        """What the other commit did, such as ``MERGE``; None if that is not known."""
        return self.parameters.get("winnerOperation")

    @property
    def reason(self) -> str | None:
        """Where the two meet: a file, an application, a metadata domain, or what was changed."""
        return self.parameters.get("detail")


#: delta-spark's name for the base of all conflicts.
DeltaConcurrentModificationException = ConcurrentModificationError


class ConcurrentWriteException(ConcurrentModificationError):
    """Other writers committed again and again, or in a way no other class describes."""


class MetadataChangedException(ConcurrentModificationError):
    """Another commit changed the table's metadata, such as its schema or properties."""


class ProtocolChangedException(ConcurrentModificationError):
    """Another commit changed the table's protocol, or created the table first."""


class ConcurrentAppendException(ConcurrentModificationError):
    """Another commit added rows that this operation would have had to read."""


class ConcurrentDeleteReadException(ConcurrentModificationError):
    """Another commit removed or changed a file that this operation read."""


class ConcurrentDeleteDeleteException(ConcurrentModificationError):
    """Another commit removed or changed a file that this operation removes, too."""


class ConcurrentTransactionException(ConcurrentModificationError):
    """Another commit recorded progress for the same ``txnAppId`` or metadata domain."""


def error(condition: str, **parameters: object) -> DeltaError:
    """Return the error of a condition, as an instance of the class that the condition names."""
    texts = {name: str(value) for name, value in parameters.items()}
    return error_class(condition)(condition, texts)


def error_class(condition: str) -> type[DeltaError]:
    """Return the class of a condition's errors: the one that its ``pythonClass`` names.

    Where PySpark is, what is returned is a subclass of it and of PySpark's class. An unknown
    condition is a plain `DeltaError`.
    """
    entry = load_json("error-conditions.json").get(condition)
    found = globals().get(entry["pythonClass"]) if entry else None
    ours = found if isinstance(found, type) and issubclass(found, DeltaError) else DeltaError
    spark = _spark_classes()(entry.get("sparkClass", "") if entry else "")
    return ours if spark is None else _subclass(ours, spark)


def sql_state(condition: str) -> str:
    """Return the SQLSTATE of a condition; that of an internal error for an unknown one."""
    entry = load_json("error-conditions.json").get(condition)
    return str(entry.get("sqlState", _INTERNAL_SQL_STATE) if entry else _INTERNAL_SQL_STATE)


def adopt_spark_classes(find: Callable[[str], type[Exception] | None]) -> None:
    """Let errors be instances of PySpark's classes, too.

    Parameters
    ----------
    find
        Returns PySpark's class for the simple name of a class of Spark. It is asked when the first
        error arises.
    """
    _FINDERS[:] = [find]


_FINDERS: list[Callable[[str], type[Exception] | None]] = []


def _spark_classes() -> Callable[[str], type[Exception] | None]:
    return _FINDERS[0] if _FINDERS else lambda _: None


_SUBCLASSES: dict[tuple[type[DeltaError], type[Exception]], type[DeltaError]] = {}


def _subclass(ours: type[DeltaError], spark: type[Exception]) -> type[DeltaError]:
    """Return a class of both, which has the name, the module and the documentation of ours."""
    found = _SUBCLASSES.get((ours, spark))
    if found is None:
        named = {"__module__": ours.__module__, "__doc__": ours.__doc__}
        found = _SUBCLASSES.setdefault((ours, spark), type(ours.__name__, (ours, spark), named))
    return found


def _rebuild(condition: str, parameters: Mapping[str, str], message: str) -> DeltaError:
    return error_class(condition)(condition, parameters, message)


def render(condition: str, parameters: Mapping[str, str]) -> str:
    """Fill a condition's message.

    An unknown condition or a missing parameter is a bug, but must not hide the error that is being
    reported: it renders nevertheless.
    """
    entry = load_json("error-conditions.json").get(condition)
    if entry is None:
        text = ", ".join(f"{name}: {value}" for name, value in parameters.items())
    else:
        text = _PARAMETER.sub(
            lambda match: _printable(parameters.get(match[1], match[0])),
            "\n".join(entry["message"]),
        )
    return f"[{condition}] {text} SQLSTATE: {sql_state(condition)}"


def _printable(text: str) -> str:
    """Spell out what no terminal or log shows: a damaged file is quoted, and may hold anything."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
