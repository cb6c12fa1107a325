"""Values that a session takes and returns for the user-facing classes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from deltaic.arguments import Assignments

if TYPE_CHECKING:
    from pyspark.sql import Column


class ClauseKind(Enum):
    """The clauses of a MERGE, by their names in the JVM."""

    MATCHED_UPDATE = "matchedUpdate"
    MATCHED_UPDATE_ALL = "matchedUpdateAll"
    MATCHED_DELETE = "matchedDelete"
    NOT_MATCHED_INSERT = "notMatchedInsert"
    NOT_MATCHED_INSERT_ALL = "notMatchedInsertAll"
    NOT_MATCHED_BY_SOURCE_UPDATE = "notMatchedBySourceUpdate"
    NOT_MATCHED_BY_SOURCE_DELETE = "notMatchedBySourceDelete"

    @property
    def group(self) -> str:
        """The kind of rows that the clause applies to, in SQL."""
        if self.value.startswith("notMatchedBySource"):
            return "WHEN NOT MATCHED BY SOURCE"
        return "WHEN NOT MATCHED" if self.value.startswith("notMatched") else "WHEN MATCHED"

    @property
    def method(self) -> str:
        """The builder's method that adds the clause."""
        return f"when{self.value[0].upper()}{self.value[1:]}"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One clause of a MERGE.

    Attributes
    ----------
    condition
        Which rows of its kind; None for all of them.
    assignments
        The assignments of the clause; None if it is for all columns.
    """

    kind: ClauseKind
    condition: Column | None
    assignments: Assignments | None = None


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table that was resolved by name."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A table at a path; the name is None if the catalog does not have it."""

    path: str
    name: str | None
