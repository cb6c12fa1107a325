"""The errors of Deltaic: one base class, and the names that delta-spark's users catch.

An error is a *condition* with parameters. The conditions, their messages and their Python classes
are in ``resources/error-conditions.json``, which the JVM reads too, so that an error says the same
on whichever side it arises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deltaic.resources import load_json

#: What is raised when no other condition applies: a bug in Deltaic.
INTERNAL_ERROR = "DELTAIC_INTERNAL_ERROR"

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
        super().__init__(message if message is not None else render(condition, self.parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.condition, self.parameters, str(self))


class ProtocolError(DeltaError):
    """The log says something that the Delta protocol, or this build, does not allow."""


class TableStateError(DeltaError):
    """The table is not in a state in which the operation is possible."""


class InvalidArgumentError(DeltaError, ValueError):
    """An argument, option, property or schema given by the user is not valid."""


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
    """Return the class of a condition's errors; `DeltaError` itself for an unknown condition."""
    entry = load_json("error-conditions.json").get(condition)
    found = globals().get(entry["pythonClass"]) if entry else None
    return found if isinstance(found, type) and issubclass(found, DeltaError) else DeltaError


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
            lambda match: parameters.get(match[1], match[0]), "\n".join(entry["message"])
        )
    return f"[{condition}] {text}"
