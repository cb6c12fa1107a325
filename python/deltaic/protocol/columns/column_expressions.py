"""Keys of column metadata whose values are SQL."""

from __future__ import annotations

#: The expression of a generated column (Protocol § Generated Columns).
GENERATED = "delta.generationExpression"

#: The default value of a column (Protocol § Default Columns).
DEFAULT = "CURRENT_DEFAULT"

#: The value that Spark's Parquet reader returns for a column that a file lacks; by the protocol, it
#: is null. Spark sets it with each default; it must not be stored in the log.
EXISTS_DEFAULT = "EXISTS_DEFAULT"

#: The condition that all values satisfy (Protocol § Column Invariants).
INVARIANT = "delta.invariants"
