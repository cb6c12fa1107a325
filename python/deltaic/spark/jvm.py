"""The classes of the JVM that Python calls.

Resolving a name in a package, or a static method of a class, is a round trip to the JVM.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass

from deltaic.exceptions import error


class StaticMethods:
    """The static methods of a class of the JVM, each resolved once."""

    def __init__(self, java_class: JavaClass) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._class, name)
        setattr(self, name, method)
        return method


def python_api(jvm: Any) -> Any:
    """Return the methods of ``io.deltaic.spark.PythonApi``.

    Raises
    ------
    TableStateError
        If the JVM does not have the jar.
    """
    return _loaded(jvm.io.deltaic.spark.PythonApi)


def row_changes(jvm: Any) -> Any:
    """Return the methods of ``io.deltaic.spark.RowLevelStatements``.

    Raises
    ------
    TableStateError
        If the JVM does not have the jar.
    """
    return _loaded(jvm.io.deltaic.spark.RowLevelStatements)


def _loaded(found: Any) -> StaticMethods:
    if not isinstance(found, JavaClass):
        raise error("DELTAIC_JAR_NOT_LOADED")
    return StaticMethods(found)
