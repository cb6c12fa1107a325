"""The errors of Deltaic: one base class, and the exceptions that users of delta-spark catch.

An error is a *condition* with parameters. The conditions, their messages, SQLSTATEs and classes are
in ``resources/error-conditions.json``. The JVM reads the same file, so that both sides raise the
same errors.

An error is an instance of one of these classes and of the PySpark class that its condition names: a
missing table is a `TableStateError` and a ``pyspark.errors.AnalysisException``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.resources import load_json

#: The condition of an unexpected failure: a bug in Deltaic.
INTERNAL_ERROR = "DELTAIC_INTERNAL_ERROR"

#: SQLSTATE of an internal error of a data source.
_INTERNAL_SQL_STATE = "XXKDS"

#: Control characters except line feeds and tabs, and the replacement character.
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
        The message, if the JVM rendered it; by default it is rendered from the condition.

    Attributes
    ----------
    condition : str
        The condition, for code that handles one error and not another.
    parameters : dict of str to str
        The parameters of the message.
    """

    def __init__(
        self,
        condition: str,
        parameters: Mapping[str, str] | None = None,
        message: str | None = None,
    ) -> None:
        self.condition = condition
        self.parameters = dict(parameters or {})
        # The constructors of PySpark's classes take other arguments, none of which is used here.
        self.args = (message if message is not None else render(condition, self.parameters),)

    @property
    def message(self) -> str:
        """The message with its condition and SQLSTATE."""
        return str(self.args[0])

    @property
    def desc(self) -> str:
        """`message`, under the name of PySpark's older errors."""
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
        """Return the condition; deprecated in PySpark in favor of `getCondition`."""
        warnings.warn("Deprecated in 4.0.0, use getCondition instead.", FutureWarning, stacklevel=2)
        return self.condition

    def getSqlState(self) -> str:
        """Return the SQLSTATE of the condition."""
        return sql_state(self.condition)

    def getMessageParameters(self) -> dict[str, str]:
        """Return the parameters of the message."""
        return self.parameters

    def getMessage(self) -> str:
        """Return the message with its condition and SQLSTATE."""
        return self.message

    def getQueryContext(self) -> list[Any]:
        """Return the query context, which is empty for errors of Deltaic."""
        return []

    def getBreakingChangeInfo(self) -> dict[str, Any] | None:
        """Return None: errors of Deltaic have no breaking change info."""
        return None


class ProtocolError(DeltaError):
    """The log has something that the Delta protocol, or this build, does not allow."""


class TableStateError(DeltaError):
    """The state of the table does not allow the operation."""


class InvalidArgumentError(DeltaError, ValueError):
    """An argument, option, property or schema given by the user is not valid."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument has a wrong type."""


class ConcurrentModificationError(DeltaError):
    """A concurrent commit that conflicts with this one was committed first. Nothing was changed.

    The operation can be run again: it will see the winning version.
    """

    @property
    def table(self) -> str:
        """The table."""
        return self.parameters["table"]

    @property
    def winning_version(self) -> int:
        """The version of the winning commit."""
        return int(self.parameters["version"])

    @property
    def winning_operation(self) -> str | None:
        """The operation of the winning commit, such as ``MERGE``; None if it is unknown."""
        return self.parameters.get("winnerOperation")

    @property
    def reason(self) -> str | None:
        """What conflicts: a file, an application, a metadata domain, or a change of the table."""
        return self.parameters.get("detail")


#: delta-spark's name of the base class of all conflicts.
DeltaConcurrentModificationException = ConcurrentModificationError


class ConcurrentWriteException(ConcurrentModificationError):
    """A conflict that no other class describes, or too many lost attempts."""


class MetadataChangedException(ConcurrentModificationError):
    """Another commit changed the table's metadata, such as its schema or properties."""


class ProtocolChangedException(ConcurrentModificationError):
    """Another commit changed the table's protocol, or created the table first."""


class ConcurrentAppendException(ConcurrentModificationError):
    """Another commit added rows that this operation should have read."""


class ConcurrentDeleteReadException(ConcurrentModificationError):
    """Another commit removed or changed a file that this operation read."""


class ConcurrentDeleteDeleteException(ConcurrentModificationError):
    """Another commit removed or changed a file that this operation also removes."""


class ConcurrentTransactionException(ConcurrentModificationError):
    """Another commit set the same ``txnAppId`` or metadata domain."""


def error(condition: str, **parameters: object) -> DeltaError:
    """Return the error of a condition, as an instance of the class that the condition names."""
    strings = {name: str(value) for name, value in parameters.items()}
    return error_class(condition)(condition, strings)


def error_class(condition: str) -> type[DeltaError]:
    """Return the class of a condition's errors, which its ``pythonClass`` names.

    If PySpark is installed, the result is a subclass of that class and of PySpark's. The class of
    an unknown condition is `DeltaError`.
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
    """Make errors also instances of PySpark's classes.

    Parameters
    ----------
    find
        Returns PySpark's class for the simple name of a class of Spark. It is first called when the
        first error is created.
    """
    _FINDERS[:] = [find]


_FINDERS: list[Callable[[str], type[Exception] | None]] = []


def _spark_classes() -> Callable[[str], type[Exception] | None]:
    return _FINDERS[0] if _FINDERS else lambda _: None


_SUBCLASSES: dict[tuple[type[DeltaError], type[Exception]], type[DeltaError]] = {}


def _subclass(ours: type[DeltaError], spark: type[Exception]) -> type[DeltaError]:
    """Return a subclass of both, with the name, the module and the documentation of ours."""
    found = _SUBCLASSES.get((ours, spark))
    if found is None:
        named = {"__module__": ours.__module__, "__doc__": ours.__doc__}
        found = _SUBCLASSES.setdefault((ours, spark), type(ours.__name__, (ours, spark), named))
    return found


def _rebuild(condition: str, parameters: Mapping[str, str], message: str) -> DeltaError:
    return error_class(condition)(condition, parameters, message)


def render(condition: str, parameters: Mapping[str, str]) -> str:
    """Fill the parameters into a condition's message.

    An unknown condition or a missing parameter is a bug, but must not hide the reported error: the
    message is rendered nevertheless.
    """
    entry = load_json("error-conditions.json").get(condition)
    if entry is None:
        text = ", ".join(f"{name}: {value}" for name, value in parameters.items())
    else:
        text = _PARAMETER.sub(
            lambda match: printable(parameters.get(match[1], match[0])),
            "\n".join(entry["message"]),
        )
    return f"[{condition}] {text} SQLSTATE: {sql_state(condition)}"


def printable(text: str) -> str:
    """Escape unprintable characters: messages quote damaged files, which may hold anything."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
